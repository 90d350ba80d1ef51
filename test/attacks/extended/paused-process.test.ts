/** A process that is stopped in the middle of a change keeps its locks for a few seconds only. */
import { expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { createEndpoint, expectStatus, startTestPosthorn } from '../../support/posthorn.ts';

const URL_OF_NOBODY = 'http://127.0.0.1:9/';

test('other processes change endpoints after at most five seconds, and accept events all the time', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const [paused, other] = await Promise.all([
    startTestPosthorn({ database }),
    startTestPosthorn({ database }),
  ]);
  onTestFinished(async () => {
    await paused.kill('SIGKILL');
    await other.stop();
  });
  const { id } = await createEndpoint(other, { url: URL_OF_NOBODY, tenant: 'other' });
  // The statement that announces a change of this endpoint takes a second. It holds the lock that all changes need.
  await database.query(`
    create function posthorn.dawdle() returns trigger language plpgsql as $$
    begin perform pg_sleep(1); return null; end $$;
    create trigger dawdle after update of version on posthorn.endpoints
      for each row when (new.tenant = 'slow') execute function posthorn.dawdle()`);
  const slow = paused.api('POST', '/v1/endpoints', { url: URL_OF_NOBODY, tenant: 'slow' }).catch(() => null);
  await eventually('its change holds the lock', async () => {
    const sleeping = await database.query(
      "select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'",
    );
    return sleeping.length === 1;
  });
  process.kill(paused.pid, 'SIGSTOP');

  const startedAt = performance.now();
  const change = other.api('PATCH', `/v1/endpoints/${id}`, { paused: true });
  let slowestMs = 0;
  for (let data = 0; data < 20; data += 1) {
    const sentAt = performance.now();
    await expectStatus(other.api('POST', '/v1/events', { tenant: 'other', type: 'a.b', data }), 202);
    slowestMs = Math.max(slowestMs, performance.now() - sentAt);
  }
  expect(slowestMs).toBeLessThan(1_000);
  const answer = await change;
  // It waits at most as long as a lock may be waited for. If that was too short, the next try succeeds.
  if (answer.status !== 200)
    await expectStatus(other.api('PATCH', `/v1/endpoints/${id}`, { paused: true }), 200);
  expect(performance.now() - startedAt).toBeLessThan(8_000);
  process.kill(paused.pid, 'SIGCONT');
  await slow;
});
