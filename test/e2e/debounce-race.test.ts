/** FAN-4: debounce while another connection records the start of a request. */
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../src/postgres/database.ts';
import { decideDebounce } from '../../src/postgres/queries/debounce.ts';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { createEndpoint, startTestPosthorn } from '../support/posthorn.ts';
import { publishAll } from '../support/publish-all.ts';

test('FAN-4: a delivery whose request starts while it is about to be superseded is not skipped', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const posthorn = await startTestPosthorn({ database, inProcess: true, env: { POSTHORN_ROLE: 'api' } });
  onTestFinished(() => posthorn.stop());
  const debounce = { key: 'data.order', window_ms: 60_000 };
  await createEndpoint(posthorn, { url: 'http://127.0.0.1:9/', tenant: 'acme', debounce });
  await publishAll(posthorn, { tenant: 'acme', type: 'a.b', data: [{ order: 1 }, { order: 1 }] });
  const waiting = () =>
    database.query<{ id: string; endpoint_id: string }>(
      'select id, endpoint_id from posthorn.queue order by seq',
    );
  const [older, newer] = await waiting();

  const worker = new pg.Client({ connectionString: database.url });
  await worker.connect();
  onTestFinished(() => worker.end());
  await worker.query('begin');
  await worker.query('update posthorn.queue set started_at = clock_timestamp() where id = $1', [older!.id]);
  const store = openDatabase({
    connectionString: database.url,
    apiConnections: 1,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  onTestFinished(() => store.close());
  const decision = decideDebounce(store.pool('api'), {
    endpointId: older!.endpoint_id,
    settings: { key: debounce.key, mode: 'last', windowMs: 0, maxWaitMs: 0 },
    now: Date.now(),
    asked: [{ id: newer!.id, attempts: 0 }],
    underWay: [],
    onWireMs: 60_000,
    maxEnded: 100,
  });
  await eventually('the decision waits for the row', async () => {
    const blocked = await database.query(
      "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    return blocked.length > 0;
  });
  await worker.query('commit');
  expect((await decision).skipped).toEqual([]);
  expect((await waiting()).map(({ id }) => id)).toContain(older!.id);
});
