/** FAN-4: batches that stayed open, because the worker that sent them died. */
import { expect, onTestFinished, test } from 'vitest';
import { newEventId, newId } from '../../src/domain/ids.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { loadOpenBatches } from '../../src/postgres/queries/batches.ts';
import { deleteLeftovers } from '../../src/postgres/queries/upkeep.ts';
import { createTestDatabase } from '../support/database.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

test('FAN-4: upkeep closes open batches without waiting deliveries after a day, and corrects a start in the future', async () => {
  const database = await createTestDatabase();
  const connections = openDatabase({
    connectionString: database.url,
    apiConnections: 1,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  onTestFinished(async () => {
    await connections.close();
    await database.drop();
  });
  const pool = connections.pool('upkeep');
  const endpointId = newId(Date.now());
  const open = async (ageMs: number, isWaiting: boolean) => {
    const [id, gone, delivery] = [newId(Date.now()), newEventId(Date.now()), newEventId(Date.now())];
    await pool.query('insert into posthorn.batches (id, endpoint_id, delivery_ids) values ($1, $2, $3)', [
      id,
      endpointId,
      [gone, delivery],
    ]);
    await pool.query(
      `insert into posthorn.open_batches (id, endpoint_id, started_at) values ($1, $2, now() - make_interval(secs => $3))`,
      [id, endpointId, ageMs / 1000],
    );
    if (isWaiting)
      await pool.query(
        `insert into posthorn.queue (id, endpoint_id, tenant, event_type) values ($1, $2, 't', 'a.b')`,
        [delivery, endpointId],
      );
    return id;
  };
  await open(2 * DAY_MS, false);
  const waiting = await open(2 * DAY_MS, true);
  const recent = await open(MINUTE_MS, false);
  const future = await open(-40 * DAY_MS, false);
  await deleteLeftovers(pool, 7);
  const left = await loadOpenBatches(pool, [endpointId]);
  expect(left.map(({ id }) => id).toSorted()).toEqual([waiting, recent, future].toSorted());
  const ages = new Map(left.map(({ id, startedAt }) => [id, Date.now() - startedAt]));
  expect(ages.get(future)).toBeLessThan(MINUTE_MS);
  expect(ages.get(future)).toBeGreaterThan(-MINUTE_MS);
  expect(ages.get(recent)).toBeGreaterThanOrEqual(MINUTE_MS - 1_000);
  expect(ages.get(waiting)).toBeGreaterThan(DAY_MS);
});
