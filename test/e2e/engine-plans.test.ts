/**
 * The queue is nearly always empty when the engine's statements are planned, and may hold a million deliveries an hour
 * later. The plan stays: it must look up what it is about, and never walk through the queue.
 */
import { expect, onTestFinished, test } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import { openDatabase, type Pool } from '../../src/store/database.ts';
import { markStarted } from '../../src/store/queries/mark-started.ts';
import { settleDeliveries } from '../../src/store/queries/settle-deliveries.ts';
import { createTestDatabase } from '../support/database.ts';

test('DSP-6: statements that were planned for an empty queue look their deliveries up in a full one', async () => {
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
  const worker = { id: newId(Date.now()), name: 'test' };
  // Analyzed while nothing is in them: as far as the planner knows, that is how they are.
  await database.query('vacuum analyze posthorn.queue, posthorn.dead_letters, posthorn.endpoint_health');
  await settleDeliveries(connections.pool('settle'), [], [], worker);
  await markStarted(connections.pool('dispatch'), [], worker.id);

  const settle = await planOf(connections.pool('settle'), 'settle');
  const mark = await planOf(connections.pool('dispatch'), 'mark_started');
  for (const plan of [settle, mark]) {
    const scans = plan.filter(({ table }) => /^(queue|dead_letters|endpoint_health)$/.test(table));
    expect(scans.length).toBeGreaterThanOrEqual(2);
    for (const { table, condition } of scans) expect(condition, table).toMatch(/^Index Cond: \(\w+ = ANY /);
  }
  // Nor is every row of a batch compared with every other one.
  expect(settle.joins.filter((join) => join !== 'Hash Join')).toEqual([]);
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
