/** FAN-4: debounce survives the death of its worker. */
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
  const events = data.map((each) => ({ tenant, type: 'order.changed', data: each }));
  const { body } = await expectStatus(by.api('POST', '/v1/events/batch', { events }), 202);
  return body.results.map(({ id }: { id: string }) => id) as string[];
}

const versions = (count: number) => Array.from({ length: count }, (_, version) => ({ order: 'o1', version }));

describe('FAN-4: debounce', () => {
  test('the window survives a restart', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const receiver = await newReceiver();
    const before = await startTestPosthorn({ database });
    const debounce = { key: 'data.order', window_ms: 5_000 };
    await createEndpoint(before, { url: receiver.url, tenant: 'acme', debounce });
    const early = await publishMany(before, 'acme', versions(5));
    await before.kill('SIGKILL');
    const after = await startTestPosthorn({ database });
    const late = await publishMany(after, 'acme', versions(5));
    await untilDeliveries(after, late[4]!, 'delivered', { timeoutMs: 20_000 });
    for (const id of [...early, ...late.slice(0, 4)]) await untilDeliveries(after, id, 'skipped');
    expect(receiver.requests.map(({ headers }) => headers['posthorn-debounced'])).toEqual(['9']);
    await after.stop();
  });
});
