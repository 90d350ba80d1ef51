/** FAN-4: batches survive the death of their worker. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  startTestPosthorn,
  type TestPosthorn,
  untilDeliveries,
} from '../support/posthorn.ts';

async function publishMany(by: Pick<TestPosthorn, 'api'>, tenant: string, data: readonly unknown[]) {
  const events = data.map((each) => ({ tenant, type: 'a.b', data: each }));
  const { body } = await expectStatus(by.api('POST', '/v1/events/batch', { events }), 202);
  return body.results.map(({ id }: { id: string }) => id) as string[];
}

describe('FAN-4: batches', () => {
  test('kill -9 while a batch is on the wire: the next process sends the same events under the same id', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const receiver = await newReceiver();
    receiver.hang();
    const before = await startTestPosthorn({ database });
    const settings = { url: receiver.url, tenant: 'acme', timeout_ms: 1000 };
    await createEndpoint(before, { ...settings, batch: { max_events: 4, max_wait_ms: 100 } });
    const ids = await publishMany(before, 'acme', [1, 2, 3, 4, 5, 6]);
    await receiver.waitFor(2);
    await before.kill('SIGKILL');
    receiver.release();
    const after = await startTestPosthorn({ database });
    for (const id of ids) await untilDeliveries(after, id, 'delivered');
    expect(receiver.requests).toHaveLength(4);
    const bodies = receiver.requests.map(({ body }) => body.toString());
    expect(bodies.slice(2).toSorted()).toEqual(bodies.slice(0, 2).toSorted());
    await after.stop();
  });
});
