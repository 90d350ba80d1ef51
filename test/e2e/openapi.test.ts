/** Calls every operation of the OpenAPI document. A new route is called too, or a test fails and says why. */
import { beforeAll, describe, expect, test } from 'vitest';
import { type ApiOperation, Contract } from '../support/contract.ts';
import {
  type Answer,
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import { startReceiver } from '../support/receiver.ts';
import { addressIn, exampleIn, makeWorld, placesOf, type World } from '../support/world.ts';

const posthorn = usePosthorn();
let contract: Contract;

beforeAll(async () => {
  contract = new Contract(
    (await expectStatus(posthorn.api('GET', '/openapi.json', undefined, { key: null }), 200)).body,
  );
  expect(contract.document.servers).toEqual([{ url: posthorn.url }]);
});

async function newKey(settings: { scope: string; tenant?: string }): Promise<string> {
  return (await expectStatus(posthorn.api('POST', '/v1/keys', settings), 201)).body.key;
}

const needingKeys = (): ApiOperation[] => contract.operations.filter(({ role }) => role !== null);

/** Calls an operation with its example. */
async function call(operation: ApiOperation, world: World, key?: string | null): Promise<Answer> {
  const body = exampleIn(world, contract.exampleOf(operation));
  const answer = await posthorn.api(
    operation.method,
    addressIn(world, operation.path),
    body,
    key === undefined ? {} : { key },
  );
  expect(contract.violation(operation, answer)).toBeNull();
  return answer;
}

/** Operations that need an object in another state than those of `world`, and the status that they answer instead. */
const OTHERWISE: Readonly<Record<string, number>> = {
  cancelTask: 409,
  restoreDelivery: 409,
  deleteTenant: 409,
  restoreArchived: 404,
};
/** Objects that belong to no tenant: every key may read them. */
const isShared = (path: string): boolean => path.startsWith('/v1/event-types');
/** Operations across all tenants: 403 with a key of one tenant. */
const ACROSS_TENANTS = new Set(['listTenants']);

/** Texts that would reveal that the tenant exists. */
const ownOf = ({ tenant, parameters }: World): string[] => [
  tenant,
  ...Object.entries(parameters).flatMap(([place, id]) => (isShared(place) || id.length < 10 ? [] : [id])),
];

describe('the API matches its document', () => {
  test('every operation answers its example as documented', async () => {
    const receiver = await newReceiver();
    receiver.answer({ status: 404 });
    let world = await makeWorld(posthorn, receiver.url);
    let isMissingSomething = false;
    for (const operation of contract.operations.filter(({ streams }) => !streams)) {
      if (operation.role !== 'read' || isMissingSomething) world = await makeWorld(posthorn, receiver.url);
      isMissingSomething = operation.method === 'DELETE';
      const answer = await call(operation, world);
      const expected = OTHERWISE[operation.name];
      if (expected === undefined)
        expect(answer.status, `${operation.name}: ${answer.text}`).toBeLessThan(300);
      else expect(answer.status, operation.name).toBe(expected);
      // Delete what the example created, so that Posthorn does not keep sending to an invented address.
      const { location } = answer.headers;
      if (answer.status === 201 && typeof location === 'string')
        await expectStatus(posthorn.api('DELETE', location), 204);
    }
  });
});

/** Lists that are empty or have one page in this test. Their cursors have the form of those of other lists. */
const WITHOUT_SECOND_PAGE = new Set(['listSchemaFailures', 'listPins']);

test('every next_cursor has the form that its list documents, and leads to the next page', async () => {
  const receiver = await newReceiver();
  receiver.answer({ status: 404 });
  const world = await makeWorld(posthorn, receiver.url);
  await makeWorld(posthorn, receiver.url);
  const { tenant } = world;
  // The deliveries of one event, each with an attempt, and those of one endpoint.
  await createEndpoint(posthorn, { url: `${receiver.url}/second`, tenant });
  const event = await publish(posthorn, { type: 'order.created', tenant, data: 1 });
  await untilDeliveries(posthorn, event.id, 'dead', { count: 2 });
  const parameters = { ...world.parameters, '/v1/events/{id}': event.id };
  const lists = contract.operations.filter(({ operation }) =>
    operation.parameters?.some(({ name }) => name === 'cursor'),
  );
  expect(lists.length).toBeGreaterThan(15);
  for (const { name, path, operation } of lists) {
    const address = addressIn({ tenant, parameters }, path);
    const { body } = await expectStatus(posthorn.api('GET', `${address}?limit=1`), 200);
    if (WITHOUT_SECOND_PAGE.has(name)) continue;
    const { schema } = operation.parameters!.find((parameter) => parameter.name === 'cursor')!;
    expect(body.next_cursor, name).toMatch(new RegExp(String(schema.pattern)));
    const next = `${address}?limit=1&cursor=${encodeURIComponent(body.next_cursor)}`;
    const { body: second } = await expectStatus(posthorn.api('GET', next), 200);
    expect(second.data[0], name).not.toEqual(body.data[0]);
  }
});

describe('SEC-2: in every operation', () => {
  let theirs: World;
  beforeAll(async () => {
    const receiver = await startReceiver();
    receiver.answer({ status: 404 });
    theirs = await makeWorld(posthorn, receiver.url);
    await receiver.close();
  });

  test('no key is 401', async () => {
    for (const operation of needingKeys())
      expect((await call(operation, theirs, null)).status, operation.name).toBe(401);
    expect(needingKeys().length).toBeGreaterThan(30);
  });

  test('a read key can read and cannot change anything', async () => {
    const may = ({ role, name }: ApiOperation, tenant: string | undefined) =>
      role === 'read' && (tenant === undefined || !ACROSS_TENANTS.has(name));
    for (const tenant of [undefined, theirs.tenant]) {
      const key = await newKey({ scope: 'read', ...(tenant !== undefined && { tenant }) });
      for (const operation of needingKeys().filter(({ streams }) => !streams)) {
        const { status, text } = await call(operation, theirs, key);
        expect(status, `${operation.name}: ${text}`).toBe(may(operation, tenant) ? 200 : 403);
      }
    }
  });

  test('admin operations are 403 with a tenant key', async () => {
    const key = await newKey({ scope: 'tenant', tenant: theirs.tenant });
    const operations = needingKeys().filter(({ role }) => role === 'admin');
    for (const operation of operations)
      expect((await call(operation, theirs, key)).status, operation.name).toBe(403);
    expect(operations.length).toBeGreaterThan(0);
  });

  test('objects of another tenant are 404', async () => {
    const key = await newKey({ scope: 'tenant', tenant: newTenant() });
    const operations = needingKeys().filter(
      ({ role, path }) => role !== 'admin' && !isShared(path) && placesOf(path).length > 0,
    );
    for (const operation of operations) {
      const { body, text } = await call(operation, theirs, key);
      expect(body, operation.name).toMatchObject({ status: 404, code: 'not_found' });
      expect(text).not.toContain(theirs.tenant);
    }
    expect(operations.length).toBeGreaterThan(15);
  });

  test('naming another tenant is 403, in a query or a body', async () => {
    const key = await newKey({ scope: 'tenant', tenant: newTenant() });
    let tried = 0;
    for (const operation of needingKeys().filter(
      ({ path, role }) => role !== 'admin' && !path.includes('{'),
    )) {
      const { parameters = [] } = operation.operation;
      if (parameters.some(({ name }) => name === 'tenant')) {
        const answer = await posthorn.api(
          operation.method,
          `${operation.path}?tenant=${theirs.tenant}`,
          undefined,
          { key },
        );
        expect(answer.body, operation.name).toMatchObject({ status: 403, code: 'forbidden' });
        tried += 1;
      }
      if (JSON.stringify(contract.exampleOf(operation) ?? null).includes('"tenant"')) {
        const { body } = await call(operation, theirs, key);
        // Each event of a batch is refused by itself.
        const refusals = body.results?.map(({ error }: { error: unknown }) => error) ?? [body];
        for (const refusal of refusals)
          expect(refusal, operation.name).toMatchObject({ status: 403, code: 'forbidden' });
        tried += 1;
      }
    }
    expect(tried).toBeGreaterThan(7);
  });

  test('no list contains objects of another tenant', async () => {
    const key = await newKey({ scope: 'tenant', tenant: newTenant() });
    const lists = needingKeys().filter(
      ({ method, path, role, streams }) =>
        method === 'GET' && role === 'read' && !streams && !path.includes('{'),
    );
    for (const operation of lists) {
      const { status, text } = await call(operation, theirs, key);
      expect(status, operation.name).toBe(ACROSS_TENANTS.has(operation.name) ? 403 : 200);
      for (const secret of ownOf(theirs)) expect(text, operation.name).not.toContain(secret);
    }
    expect(lists.length).toBeGreaterThan(4);
  });
});
