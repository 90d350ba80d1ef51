/**
 * Calls every operation with requests that are generated from its schemas: valid, almost valid and hostile. There must be no
 * 5xx, and every answer must be documented.
 *
 *   FUZZ_RUNS=20000 npx vitest run test/extended/fuzz.test.ts     more of it, with another seed each time
 *   FUZZ_SEED=… FUZZ_RUNS=…                                   the same again
 */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Arbitraries, type FuzzRequest } from '../support/arbitrary.ts';
import { Contract } from '../support/contract.ts';
import { type Answer, expectStatus, usePosthorn } from '../support/posthorn.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { addressIn, makeWorld, type World } from '../support/world.ts';

const RUNS = Number(process.env.FUZZ_RUNS ?? 1500);
/** Without FUZZ_RUNS every run has the same seed; with FUZZ_RUNS each run has a new one. */
const SEED = Number(
  process.env.FUZZ_SEED ?? (process.env.FUZZ_RUNS === undefined ? 42 : Date.now() % 2 ** 31),
);

const posthorn = usePosthorn();
let contract: Contract;
let receiver: Receiver;
let world: World;

beforeAll(async () => {
  receiver = await startReceiver();
  receiver.answer({ status: 404 });
  contract = new Contract((await expectStatus(posthorn.api('GET', '/openapi.json'), 200)).body);
  world = await makeWorld(posthorn, receiver.url);
});
afterAll(() => receiver?.close());

test('no generated request breaks the server, and every answer is documented', async () => {
  const ending = contract.operations.filter(({ streams }) => !streams);
  const operations = new Map(ending.map((operation) => [operation.name, operation]));
  const arbitraries = new Arbitraries(contract, knownIn(world));
  const requests = fc.oneof(...ending.map((operation) => arbitraries.requestOf(operation)));
  const seen = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(requests, async (request) => {
      const operation = operations.get(request.operation)!;
      const answer = await send(request, operation.method, operation.path);
      seen.set(
        `${request.operation} ${answer.status}`,
        (seen.get(`${request.operation} ${answer.status}`) ?? 0) + 1,
      );
      if (answer.status >= 500) throw new Error(`${request.operation}: ${answer.status} ${answer.text}`);
      const violation = contract.violation(operation, answer);
      if (violation !== null) throw new Error(violation);
      // It deleted an object that the other operations need.
      if (operation.method === 'DELETE' && operation.path.endsWith('}') && answer.status === 204)
        world = await makeWorld(posthorn, receiver.url);
    }),
    // A busy machine makes fewer runs.
    {
      numRuns: RUNS,
      seed: SEED,
      ...(process.env.FUZZ_RUNS === undefined && { interruptAfterTimeLimit: 8_000 }),
    },
  );
  if (process.env.FUZZ_RUNS !== undefined)
    process.stdout.write(
      `seed ${SEED}\n${[...seen]
        .sort()
        .map(([what, times]) => `${times}\t${what}\n`)
        .join('')}`,
    );
  // Requests to most operations succeeded, unless the time limit stopped the run early.
  const succeeded = [...seen.keys()].filter((what) => / 2\d\d$/.test(what)).map((what) => what.split(' ')[0]);
  const runs = [...seen.values()].reduce((sum, times) => sum + times, 0);
  if (runs >= RUNS) expect(new Set(succeeded).size).toBeGreaterThan(ending.length * 0.8);
  expect(runs).toBeGreaterThan(20);
  expect((await posthorn.api('GET', '/readyz')).status).toBe(200);
});

/** Valid values for fields whose schema only says that they are strings. */
function knownIn({ tenant, parameters }: World): Record<string, string> {
  return {
    tenant,
    url: receiver.url,
    events: 'order.*',
    endpoint_id: parameters['/v1/endpoints/{id}']!,
    endpoint_ids: parameters['/v1/endpoints/{id}']!,
    event_id: parameters['/v1/events/{id}']!,
    ids: parameters['/v1/deliveries/{id}']!,
    since: '2020-01-01T00:00:00Z',
    until: '2100-01-01T00:00:00Z',
    secret: `whsec_${Buffer.alloc(24, 7).toString('base64')}`,
  };
}

function send(
  { path, query, headers, body }: FuzzRequest,
  method: string,
  template: string,
): Promise<Answer> {
  const parameters = Object.fromEntries(
    Object.entries(path).map(([place, value]) => [place, value?.toWellFormed() || world.parameters[place]!]),
  );
  const address = addressIn({ tenant: world.tenant, parameters }, template);
  const search = new URLSearchParams(query).toString();
  return posthorn.api(method, search === '' ? address : `${address}?${search}`, body ?? undefined, {
    headers,
  });
}
