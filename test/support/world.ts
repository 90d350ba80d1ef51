/** A tenant with one object of each kind, for tests that call every operation. */
import type { TestDatabase } from './database.ts';
import { eventually } from './eventually.ts';
import { insertRejectedRecord } from './kafka/rejected-record.ts';
import {
  createEndpoint,
  expectStatus,
  newTenant,
  publish,
  type TestPosthorn,
  untilDeliveries,
} from './posthorn.ts';

export interface World {
  readonly tenant: string;
  /** Path parameters by their place, such as `/v1/endpoints/{id}`. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** `receiverUrl` must refuse requests, so that the delivery dies. */
export async function makeWorld(
  posthorn: Pick<TestPosthorn, 'api'> & { readonly database: TestDatabase },
  receiverUrl: string,
): Promise<World> {
  const tenant = newTenant();
  const endpoint = await createEndpoint(posthorn, { url: receiverUrl, tenant });
  const event = await publish(posthorn, { type: 'order.created', tenant, data: { private: tenant } });
  const [delivery] = await untilDeliveries(posthorn, event.id, 'dead');
  const batched = { url: receiverUrl, tenant, events: ['world.batched'], batch: { max_wait_ms: 0 } };
  await createEndpoint(posthorn, batched);
  const inBatch = await publish(posthorn, { type: 'world.batched', tenant, data: 1 });
  const carried = await untilDeliveries(posthorn, inBatch.id, 'dead', { count: inBatch.deliveries });
  const batchId = carried.find(({ batch_id }) => batch_id !== null)!.batch_id!;
  const task = await expectStatus(
    posthorn.api('POST', '/v1/dead-letters/replay', { filter: { tenant, type: 'never' } }),
    202,
  );
  await eventually('the task has ended', async () => {
    const { body } = await posthorn.api('GET', `/v1/tasks/${task.body.id}`);
    return body.state === 'done';
  });
  const eventType = `${tenant.replace('tenant', 'thing')}.created`;
  await expectStatus(posthorn.api('PUT', `/v1/event-types/${eventType}`, {}), 201);
  await expectStatus(posthorn.api('PUT', `/v1/event-types/${eventType}/versions/v1`, {}), 201);
  const { body: current } = await expectStatus(posthorn.api('GET', '/v1/keys/current'), 200);
  const inbox = current.capabilities.inbox
    ? await expectStatus(posthorn.api('POST', '/v1/inboxes', { tenant }), 201)
    : null;
  const notifier = await expectStatus(
    posthorn.api('POST', '/v1/notifiers', { kind: 'slack', tenant, url: receiverUrl }),
    201,
  );
  const key = await expectStatus(posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant }), 201);
  const portalSession = await expectStatus(posthorn.api('POST', '/v1/portal-sessions', { tenant }), 201);
  return {
    tenant,
    parameters: {
      '/v1/endpoints/{id}': endpoint.id,
      '/v1/events/{id}': event.id,
      '/v1/deliveries/{id}': delivery!.id,
      '/v1/deliveries/{id}/attempts/{number}': '1',
      '/v1/batches/{id}': batchId,
      '/v1/tasks/{id}': task.body.id,
      '/v1/keys/{id}': key.body.id,
      '/v1/portal-sessions/{id}': portalSession.body.id,
      '/v1/notifiers/{id}': notifier.body.id,
      '/v1/tenants/{id}': tenant,
      '/v1/sources/kafka/rejected/{id}': await insertRejectedRecord(posthorn.database, {
        tenant,
        // Of its own: the example of another operation retries all records of the topic `orders`.
        topic: tenant,
      }),
      '/v1/event-types/{name}': eventType,
      '/v1/event-types/{name}/versions/{version}': 'v1',
      '/v1/event-types/{name}/versions/{version}/diff/{other}': 'v1',
      ...(inbox !== null && { '/v1/inboxes/{token}': inbox.body.token }),
    },
  };
}

/** Replaces the tenant in an example by that of the world. */
export function exampleIn<T>({ tenant }: World, example: T): T {
  if (example === undefined) return example;
  return JSON.parse(JSON.stringify(example), (name, value) => (name === 'tenant' ? tenant : value)) as T;
}

/** The address of an operation on the objects of a world. */
export function addressIn({ parameters }: World, path: string): string {
  return placesOf(path).reduce((address, place) => {
    const value = parameters[place];
    if (value === undefined)
      throw new Error(`${path} needs a parameter: add '${place}' to test/support/world.ts.`);
    return address.replace(/\{\w+\}/, encodeURIComponent(value));
  }, path);
}

/** `/v1/a/{x}/b/{y}` has the places `/v1/a/{x}` and `/v1/a/{x}/b/{y}`. */
export function placesOf(path: string): string[] {
  return [...path.matchAll(/\{\w+\}/g)].map(({ 0: parameter, index }) =>
    path.slice(0, index + parameter.length),
  );
}
