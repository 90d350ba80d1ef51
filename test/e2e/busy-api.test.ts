/** Accepting and delivering have their own connections, so other requests to the API cannot block them. */
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { createEndpoint, expectStatus, newReceiver, newTenant, usePosthorn } from '../support/posthorn.ts';

const posthorn = usePosthorn();

/** Opens a transaction that locks the table until it is rolled back. */
async function locking(table: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: posthorn.database.url });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query('begin');
  await client.query(`lock ${table} in access exclusive mode`);
  return client;
}

test('events are accepted while every API connection waits for a lock, also with new keys and endpoints', async () => {
  const tenant = newTenant();
  const receiver = await newReceiver();
  await createEndpoint(posthorn, { url: receiver.url, tenant });
  const { body: unused } = await expectStatus(
    posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant }),
    201,
  );
  const somebody = await locking('posthorn.event_types');
  // Makes the cached endpoints outdated, so that accepting must read them again.
  await posthorn.database.query(
    `with next as (update posthorn.subscription_version set version = version + 1 returning version)
     update posthorn.endpoints e set version = next.version from next where tenant = $1`,
    [tenant],
  );
  const readers = Array.from({ length: 12 }, () => posthorn.api('GET', '/v1/event-types'));
  await eventually('all connections of the API wait', async () => {
    const waiting = await posthorn.database.query(
      "select pid from pg_stat_activity where application_name = 'posthorn api' and wait_event_type = 'Lock' and datname = current_database()",
    );
    return waiting.length >= 4;
  });
  const event = { type: 'order.created', tenant, data: {} };
  const answer = await posthorn.api('POST', '/v1/events', event, { key: unused.key, timeoutMs: 2500 });
  expect(answer.status).toBe(202);
  await eventually('it is delivered', () => receiver.requests.length === 1);
  await somebody.query('rollback');
  await Promise.all(readers);
});

test('a process is ready even if the lag of the outbox cannot be read', async () => {
  const somebody = await locking('posthorn.outbox');
  const answer = await posthorn.api('GET', '/readyz', undefined, { key: null, timeoutMs: 2500 });
  expect([answer.status, answer.body]).toMatchObject([200, { status: 'ready', outbox: null }]);
  await somebody.query('rollback');
  await eventually('the outbox is told of again', async () => {
    const { body } = await posthorn.api('GET', '/readyz', undefined, { key: null });
    return body.outbox?.rejected === 0;
  });
});
