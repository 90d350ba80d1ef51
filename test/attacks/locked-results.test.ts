/** A row that another transaction keeps locked stops only the deliveries of its endpoint, not the results of others. */
import { expect, test } from 'vitest';
import { parsePublicId } from '../../src/domain/ids.ts';
import { readBlocks } from '../support/doc-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { lockRows } from '../support/lock-rows.ts';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  usePosthorn,
} from '../support/posthorn.ts';

const posthorn = usePosthorn({
  inProcess: true,
  // Fewer than the locked deliveries.
  env: { POSTHORN_UNSETTLED_CAP: '50' },
});

/** A result that waited for the lock would wait until the test ends. */
const RECORDED_WITHIN_MS = 5_000;

async function newVictim(settings: Record<string, unknown> = {}) {
  const [receiver, tenant] = [await newReceiver(), newTenant()];
  await createEndpoint(posthorn, { url: receiver.url, tenant, ...settings });
  /** Posts events and returns when they are delivered and recorded. */
  const deliver = async (events: number): Promise<void> => {
    const delivered = async (): Promise<number> => {
      const sql = `select count(*)::int as n from posthorn.deliveries where tenant = $1 and status = 'delivered'`;
      return (await posthorn.database.query<{ n: number }>(sql, [tenant]))[0]!.n;
    };
    const wanted = (await delivered()) + events;
    const batch = Array.from({ length: events }, (_, n) => ({ tenant, type: 'a.b', data: n }));
    await expectStatus(posthorn.api('POST', '/v1/events/batch', { events: batch }), 202);
    await eventually(`${events} results are recorded`, async () => (await delivered()) === wanted, {
      timeoutMs: RECORDED_WITHIN_MS,
    });
  };
  await deliver(1);
  return { deliver };
}

const waiting = async (tenant: string): Promise<number> =>
  (await posthorn.database.query('select from posthorn.queue where tenant = $1', [tenant])).length;

test.each([
  ['one waiting delivery', 1],
  ['more waiting deliveries than results may be unrecorded', 300],
])(
  '%s, locked elsewhere, does not keep the results of another tenant from being recorded',
  async (_, count) => {
    const victim = await newVictim();
    const [receiver, attacker] = [await newReceiver(), newTenant()];
    await createEndpoint(posthorn, { url: receiver.url, tenant: attacker, max_in_flight: 30 });
    receiver.hang();
    const events = Array.from({ length: count }, (_each, n) => ({ tenant: attacker, type: 'a.b', data: n }));
    await posthorn.api('POST', '/v1/events/batch', { events });
    await receiver.waitFor(1);
    const unlock = await lockRows(
      posthorn.database,
      'select from posthorn.queue where tenant = $1 for update',
      [attacker],
    );
    receiver.release();
    for (let round = 0; round < 4; round += 1) await victim.deliver(20);
    expect(await waiting(attacker)).toBe(count);
    await unlock();
    await eventually('the locked deliveries are recorded too', async () => (await waiting(attacker)) === 0, {
      timeoutMs: 10_000,
    });
  },
);

test('the health of an endpoint, locked elsewhere, does not keep the results of another tenant from being recorded', async () => {
  const victim = await newVictim();
  const [receiver, attacker] = [await newReceiver(), newTenant()];
  const { id } = await createEndpoint(posthorn, {
    url: receiver.url,
    tenant: attacker,
    breaker: { consecutive: 100, failure_rate: 1, min_requests: 1000 },
    retry: { schedule: [0, 0.05, 0.05, 0.05] },
  });
  receiver.answer({ status: 500 });
  const endpointId = parsePublicId('ep', id);
  const failures = async (): Promise<number> =>
    (
      await posthorn.database.query<{ n: number }>(
        'select consecutive_failures as n from posthorn.endpoint_health where endpoint_id = $1',
        [endpointId],
      )
    )[0]?.n ?? 0;
  await publish(posthorn, { tenant: attacker, type: 'a.b', data: 0 });
  await eventually('the first failures are recorded', async () => (await failures()) === 4);
  const unlock = await lockRows(
    posthorn.database,
    'select from posthorn.endpoint_health where endpoint_id = $1 for update',
    [endpointId],
  );
  for (let round = 0; round < 4; round += 1) {
    await publish(posthorn, { tenant: attacker, type: 'a.b', data: round });
    await victim.deliver(20);
  }
  await unlock();
  // Four deliveries with four attempts each, and the latest state is the one that is stored.
  await eventually('all failures are recorded', async () => (await failures()) === 20, { timeoutMs: 10_000 });
});

test('the head of a FIFO endpoint, locked elsewhere, does not keep other FIFO endpoints from sending', async () => {
  const victim = await newVictim({ ordering: 'fifo' });
  const [receiver, attacker] = [await newReceiver(), newTenant()];
  const { id } = await createEndpoint(posthorn, {
    url: receiver.url,
    tenant: attacker,
    ordering: 'fifo',
    paused: true,
  });
  await publish(posthorn, { tenant: attacker, type: 'a.b', data: 0 });
  const unlock = await lockRows(
    posthorn.database,
    'select from posthorn.queue where tenant = $1 for update',
    [attacker],
  );
  await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { paused: false }), 200);
  for (let round = 0; round < 4; round += 1) await victim.deliver(5);
  expect(receiver.requests).toHaveLength(0);
  await unlock();
  await receiver.waitFor(1);
});

test('docs/runbook.md: the query for transactions that block others runs as printed', async () => {
  const queries = readBlocks('docs/runbook.md').filter(
    ({ options }) => options['run-by'] === 'test/attacks/locked-results.test.ts',
  );
  expect(queries).toHaveLength(1);
  for (const { text } of queries) await posthorn.database.query(text);
});
