/** A tenant that publishes large fan-outs faster than they are written is limited, and other tenants are not. */
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { ADVISORY_LOCKS } from '../../../src/postgres/advisory-locks.ts';
import { eventually } from '../../support/eventually.ts';
import { createManyEndpoints } from '../../support/many-endpoints.ts';
import { createEndpoint, expectStatus, newReceiver, newTenant, usePosthorn } from '../../support/posthorn.ts';

const posthorn = usePosthorn({ env: { POSTHORN_TENANT_UNWRITTEN_DELIVERIES: '2000' } });
const NOWHERE = 'http://127.0.0.1:9';
const tomorrow = new Date(Date.now() + 86_400_000).toISOString();

/** Keeps all processes from writing slices, until the returned function is called. */
async function holdSlices(): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: posthorn.database.url });
  await client.connect();
  let ending: Promise<void> | undefined;
  const release = (): Promise<void> => {
    ending ??= client.end();
    return ending;
  };
  onTestFinished(release);
  await client.query('select pg_advisory_lock($1)', [ADVISORY_LOCKS.fanOuts]);
  return release;
}

const post = (tenant: string, more: object = {}) =>
  posthorn.api('POST', '/v1/events', { tenant, type: 'a.b', data: 1, deliver_at: tomorrow, ...more });
const countOf = async (sql: string, ...values: unknown[]): Promise<number> =>
  (await posthorn.database.query<{ n: number }>(`select count(*)::int as n from ${sql}`, values))[0]!.n;

test('ACC-1: at its limit of unwritten deliveries a tenant gets 429 for large fan-outs, and its outbox rows wait', async () => {
  const [wide, other] = [newTenant(), newTenant()];
  await createManyEndpoints(posthorn.database, { tenant: wide, url: NOWHERE, count: 4_500 });
  await createManyEndpoints(posthorn.database, { tenant: other, url: NOWHERE, count: 2_500 });
  const receiver = await newReceiver();
  const direct = await createEndpoint(posthorn, { tenant: wide, url: receiver.url, events: ['direct.only'] });
  const small = await createEndpoint(posthorn, { tenant: other, url: receiver.url, events: ['direct.only'] });
  const release = await holdSlices();

  const first = await expectStatus(post(wide, { idempotency_key: 'once' }), 202);
  const refused = await expectStatus(post(wide), 429);
  expect(refused.body).toMatchObject({
    code: 'rate_limited',
    detail: expect.stringContaining('2000 or more deliveries of large fan-outs that are not written yet'),
  });
  expect(refused.headers['retry-after']).toBe('5');
  expect(await countOf('posthorn.events where tenant = $1', wide)).toBe(1);
  const repeated = await expectStatus(post(wide, { idempotency_key: 'once' }), 202);
  expect(repeated.body).toMatchObject({ id: first.body.id, duplicate: true });
  // Small events of the tenant, and large ones of others, are accepted.
  await expectStatus(post(wide, { type: 'direct.only', deliver_at: null, endpoint_ids: [direct.id] }), 202);
  await expectStatus(post(other), 202);
  await receiver.waitFor(1);

  // More rows than one read of the outbox holds, before the row of another tenant.
  const publish = (tenant: string, type: string, data: number, endpointIds: string[] | null = null) =>
    posthorn.database.query(
      "select posthorn.publish($1, to_json($2::int), tenant => $3, endpoint_ids => $4, deliver_at => case when $1 = 'a.b' then $5::timestamptz end)",
      [type, data, tenant, endpointIds, tomorrow],
    );
  await publish(wide, 'a.b', 1);
  await posthorn.database.query(
    "select posthorn.publish('direct.only', to_json(n), tenant => $1, endpoint_ids => array[$2]) from generate_series(1, 3000) n",
    [wide, direct.id],
  );
  await publish(other, 'direct.only', 7, [small.id]);
  await receiver.waitFor(2);
  expect(receiver.requests[1]!.json().data).toBe(7);
  expect(await countOf('posthorn.outbox where tenant = $1', wide)).toBe(3_001);
  await eventually('the log says so', () =>
    posthorn.output().includes('the rows of a tenant wait in the outbox because of its limit'),
  );
  expect(await countOf('posthorn.outbox_rejected')).toBe(0);

  await release();
  await eventually('all rows are stored', async () => (await countOf('posthorn.outbox')) === 0, {
    timeoutMs: 120_000,
  });
  await eventually('all slices are written', async () => (await countOf('posthorn.fan_out_slices')) === 0, {
    timeoutMs: 120_000,
  });
  expect(await countOf('posthorn.events where tenant = $1', wide)).toBe(3_003);
  expect(await countOf("posthorn.queue where tenant = $1 and event_type = 'a.b'", wide)).toBe(9_000);
  expect(await countOf('posthorn.outbox_rejected')).toBe(0);
});
