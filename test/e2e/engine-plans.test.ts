/**
 * The queue is nearly always empty when the engine's statements are planned, and may hold a million deliveries an hour
 * later. The plan stays: it must look up what it is about, and never walk through the queue.
 */
import { expect, test } from 'vitest';
import { CLOSED_BREAKER } from '../../src/domain/breaker.ts';
import { newId } from '../../src/domain/ids.ts';
import type { AttemptOutcome } from '../../src/domain/outcome.ts';
import type { Pool } from '../../src/postgres/database.ts';
import { listEndpoints } from '../../src/postgres/queries/endpoints.ts';
import { markStarted } from '../../src/postgres/queries/mark-started.ts';
import { settleDeliveries } from '../../src/postgres/queries/settle-deliveries.ts';
import { settleFirstAttempts } from '../../src/postgres/queries/settle-first-attempts.ts';
import { DELIVERED, newOutcome, newSettlement } from '../conformance/support/records.ts';
import { openForPlans, watchPlans } from '../support/plans.ts';

test('DSP-6: statements that were planned for an empty queue use index lookups in a full one', async () => {
  const { database, connections } = await openForPlans();
  const worker = { id: newId(Date.now()), name: 'test' };
  // Analyzed while nothing is in them: as far as the planner knows, that is how they are.
  await database.query('vacuum analyze posthorn.queue, posthorn.dead_letters, posthorn.endpoint_health');
  const health = { endpointId: newId(Date.now()), breaker: CLOSED_BREAKER, failingSince: null };
  await settleDeliveries(connections.pool('settle'), [], [health], worker);
  const settlementOf = (outcome: AttemptOutcome) =>
    newSettlement(newId(Date.now()), health.endpointId, DELIVERED, { outcome });
  const shared = newOutcome();
  for (const outcomes of [[newOutcome()], [shared, shared]])
    await settleFirstAttempts(connections.pool('settle'), outcomes.map(settlementOf), worker.name);
  await markStarted(connections.pool('dispatch'), [], worker.id);

  const settle = await planOf(connections.pool('settle'), 'settle');
  const mark = await planOf(connections.pool('dispatch'), 'mark_started');
  const settleFirst = await planOf(connections.pool('settle'), 'settle_first_attempts');
  const settleBatches = await planOf(connections.pool('settle'), 'settle_first_batches');
  for (const [plan, minScans] of [
    [settle, 2],
    [settleFirst, 1],
    [settleBatches, 1],
    [mark, 2],
  ] as const) {
    const scans = plan.filter(({ table }) => /^(queue|dead_letters|endpoint_health)$/.test(table));
    expect(scans.length).toBeGreaterThanOrEqual(minScans);
    for (const { table, condition } of scans) expect(condition, table).toMatch(/^Index Cond: \(\w+ = ANY /);
  }
  // Nor is every row of a batch compared with every other one.
  expect(
    [...settle.joins, ...settleFirst.joins, ...settleBatches.joins].filter((join) => join !== 'Hash Join'),
  ).toEqual([]);
});

test('DSP-4: the list of endpoints does not scan the backlog of one endpoint, even if the planner has only seen that endpoint', async () => {
  const { database, connections } = await openForPlans();
  await database.query(
    `insert into posthorn.endpoints (id, tenant, url, config, version)
     select gen_random_uuid(), 't', 'https://hooks.example.com/', '{}', 1 from generate_series(1, 20)`,
  );
  const busiest = '(select id from posthorn.endpoints order by id limit 1)';
  await database.query(
    `insert into posthorn.queue (id, endpoint_id, tenant, event_type)
     select gen_random_uuid(), ${busiest}, 't', 'a.b' from generate_series(1, 20000)`,
  );
  await database.query(
    `insert into posthorn.dead_letters (id, endpoint_id, reason, attempts, replays, dead_at, tenant, event_type)
     select gen_random_uuid(), ${busiest}, 'exhausted', 1, 0, now(), 't', 'a.b' from generate_series(1, 20000)`,
  );
  await database.query('vacuum analyze posthorn.queue, posthorn.dead_letters');
  const { pool, take } = watchPlans(connections.pool('api'));
  const listed = await listEndpoints(pool, { tenant: null, before: null, limit: 20 });
  expect(
    listed
      .map(({ waiting }) => waiting)
      .sort((a, b) => b - a)
      .slice(0, 2),
  ).toEqual([2500, 0]);
  const visited = take().visited.filter(({ table }) => /^(queue|dead_letters)$/.test(table));
  expect(visited.length).toBeGreaterThanOrEqual(3);
  for (const { scan, rows } of visited) expect(rows, scan).toBeLessThanOrEqual(2500);
});

interface Scan {
  readonly table: string;
  /** The line below it. */
  readonly condition: string;
}

async function planOf(pool: Pool, name: string): Promise<Scan[] & { joins: string[] }> {
  expect(pool.options.max, 'or the plans are not those of this connection').toBe(1);
  const { rows } = await pool.query<{ count: number }>(
    'select cardinality(parameter_types) as count from pg_prepared_statements where name = $1',
    [name],
  );
  const nulls = Array.from({ length: rows[0]!.count }, () => 'null').join(', ');
  const plan = await pool.query<{ 'QUERY PLAN': string }>(`explain (costs off) execute ${name}(${nulls})`);
  const lines = plan.rows.map((line) => line['QUERY PLAN'].trim().replace(/^->\s+/, ''));
  const scans = lines.flatMap((line, index) => {
    const [, table] = /Scan (?:using \w+ )?on (\w+)/.exec(line) ?? [];
    return table === undefined ? [] : [{ table, condition: lines[index + 1] ?? '' }];
  });
  return Object.assign(scans, {
    joins: lines.filter((line) => /^(Nested Loop|Hash Join|Merge Join)/.test(line)),
  });
}
