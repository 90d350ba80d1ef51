/**
 * PostgreSQL plans the statements of the outbox while it is nearly always empty. After an outage it may hold millions of rows.
 * A plan for an empty table (a sequential scan) would be far too slow then.
 */
import { expect, test } from 'vitest';
import { acceptEvents } from '../../src/postgres/queries/accept-events.ts';
import { readOutbox, rejectOutboxRows } from '../../src/postgres/queries/outbox.ts';
import { openForPlans } from '../support/plans.ts';

test('OUT-1: statements that were planned for an empty outbox use the index', async () => {
  const { database, connections } = await openForPlans();
  const pool = connections.pool('outbox');
  expect(pool.options.max, 'or the plans are not those of this connection').toBe(1);

  await database.query('vacuum analyze posthorn.outbox');
  await database.query(`select posthorn.publish('a.b', '1')`);
  const [row] = await readOutbox(pool, { afterSeq: '0', minAgeMs: 0, maxRows: 10, maxBytes: 1000 });
  const [current] = await database.query('select version from posthorn.subscription_version');
  const event = {
    ...row!,
    options: null,
    idempotencyKey: null,
    fingerprint: null,
    deliveries: [],
    skipped: [],
  };
  const answer = await acceptEvents(pool, [event], {
    endpointVersion: Number(current!.version),
    mayBeStored: true,
    idempotencyTtlMs: 1000,
    outboxSeqs: [row!.seq],
  });
  expect(answer).toEqual({ stale: false, written: new Set([row!.id]) });
  await rejectOutboxRows(pool, [{ seq: row!.seq, reason: 'gone by now' }]);

  for (const name of ['outbox_read', 'accept_from_outbox', 'outbox_reject']) {
    const { rows } = await pool.query<{ count: number }>(
      'select cardinality(parameter_types) as count from pg_prepared_statements where name = $1',
      [name],
    );
    const nulls = Array.from({ length: rows[0]!.count }, () => 'null').join(', ');
    const plan = await pool.query<{ 'QUERY PLAN': string }>(`explain execute ${name}(${nulls})`);
    const text = plan.rows.map((line) => line['QUERY PLAN']).join('\n');
    expect(text, name).not.toContain('Seq Scan on outbox');
    expect(text, name).toContain('Index Scan using outbox_pkey on outbox');
  }
});
