/** Someone exhausts the descriptors of the process: deliveries continue, and no failure counts against a receiver. */

import { connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import {
  createEndpoint,
  deliveriesOf,
  expectStatus,
  newReceiver,
  publish,
  startTestPosthorn,
  type TestPosthorn,
} from '../support/posthorn.ts';

async function startWith(descriptors: number, options: { args?: string[] } = {}): Promise<TestPosthorn> {
  const database = await createTestDatabase();
  const posthorn = await startTestPosthorn({ database, descriptors, ...options });
  onTestFinished(async () => {
    await posthorn.stop();
    await database.drop();
  });
  return posthorn;
}

const circuitOf = async (posthorn: TestPosthorn, id: string): Promise<unknown> =>
  (await expectStatus(posthorn.api('GET', `/v1/endpoints/${id}`), 200)).body.health.circuit;

const shortages = async (posthorn: TestPosthorn): Promise<number> => {
  const { text } = await expectStatus(posthorn.api('GET', '/metrics'), 200);
  const samples = [...text.matchAll(/^posthorn_local_shortages_total\{.*code="EMFILE".*\} (\d+)$/gm)];
  expect(samples.length).toBeGreaterThan(0);
  return samples.reduce((sum, [, value]) => sum + Number(value), 0);
};

/** Opens connections that each send a few bytes of a request, so that the server waits for the rest. */
function openConnections({ url }: TestPosthorn, count: number) {
  const { port } = new URL(url);
  const counts = { open: 0, closed: 0 };
  const sockets = Array.from({ length: count }, (): Socket => {
    const socket = connect({ host: '127.0.0.1', port: Number(port) });
    socket.on('error', () => {}).resume();
    socket.once('connect', () => socket.write('GET / HTTP/1.1\r\n', () => (counts.open += 1)));
    socket.once('close', () => (counts.closed += 1));
    return socket;
  });
  const closeAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(closeAll);
  return { counts, closeAll };
}

it.each([['1'], ['2']])(
  'hundreds of unauthenticated connections leave descriptors for deliveries and the database (--processes %s)',
  async (processes) => {
    const posthorn = await startWith(400, {
      args: ['--processes', processes, '--port', String(await freePort())],
    });
    const receiver = await newReceiver();
    const endpoint = await createEndpoint(posthorn, { url: receiver.url, tenant: 'acme' });
    const { counts, closeAll } = openConnections(posthorn, 500);
    await eventually('the connections are open', () => counts.open >= 400);
    // Long before the server would close those that it accepted, for their slow headers.
    await eventually('those above the limit are closed', () => counts.closed >= 100, { timeoutMs: 5000 });
    // While they are open: with `--processes 2`, the supervisor hands them over one by one. It lacks descriptors too while many wait, and
    // then the system closes some before a child has seen more than its limit.
    await eventually('it is logged', () =>
      posthorn.output().includes('too many connections; new ones are closed'),
    );
    // On a connection that was open before.
    const event = await publish(posthorn, { type: 'order.created', data: 1, tenant: 'acme' });
    await receiver.waitFor(1);
    closeAll();
    await eventually('the delivery is recorded', async () => {
      const [delivery] = await deliveriesOf(posthorn, event.id);
      return delivery?.status === 'delivered' && delivery.attempts === 1;
    });
    expect(await circuitOf(posthorn, endpoint.id)).toBe('closed');
    expect(await shortages(posthorn)).toBe(0);
  },
);

it('a request without a descriptor does not count as an attempt, opens no circuit, and is reported', async () => {
  const posthorn = await startWith(110);
  const receiver = await newReceiver();
  // Idle connections would keep their descriptors for another 4 s.
  receiver.answer({ headers: { connection: 'close' } });
  receiver.hang();
  const endpoint = await createEndpoint(posthorn, {
    url: receiver.url,
    tenant: 'acme',
    max_in_flight: 200,
    timeout_ms: 30_000,
  });
  const events = Array.from({ length: 90 }, (_, data) => ({ type: 'order.created', tenant: 'acme', data }));
  const { body } = await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }), 202);
  await eventually('descriptors run out', () => posthorn.output().includes('EMFILE'));
  expect(posthorn.output()).toMatch(/"level":"?(50|error)"?.*this machine lacks resources/);
  receiver.release();
  await receiver.waitFor(90, 30_000);
  for (const { id } of body.results.slice(0, 10).concat(body.results.slice(-40))) {
    const [delivery] = await eventually('it is recorded', async () => {
      const found = await deliveriesOf(posthorn, id);
      return found[0]?.status === 'delivered' ? found : undefined;
    });
    expect(delivery!.attempts).toBe(1);
  }
  expect(await circuitOf(posthorn, endpoint.id)).toBe('closed');
  expect(await shortages(posthorn)).toBeGreaterThan(0);
});
