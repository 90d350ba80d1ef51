/** The state that relays report to Posthorn's database, for metrics, readiness and the console. */
import type { Pool } from '../database.ts';

export type RelayMode = 'poll' | 'cdc';

export interface KnownSource {
  /** True if the table must be read before the log, because the slot is new or was lost. */
  readonly needsTable: boolean;
  /** The position in the log that a relay last reported as confirmed. */
  readonly confirmedLsn: string | null;
}

/** Registers a relay. After a relay that polls, the next one that follows the log must read the table first. */
export async function registerSource(pool: Pool, name: string, mode: RelayMode): Promise<KnownSource> {
  const { rows } = await pool.query<{ needs_table: boolean; confirmed_lsn: string | null }>(
    `insert into posthorn.relay_sources as s (name, mode) values ($1, $2)
         on conflict (name) do update set mode = excluded.mode,
            needs_table = s.needs_table or excluded.mode = 'poll'
     returning needs_table, confirmed_lsn::text`,
    [name, mode],
  );
  return { needsTable: rows[0]!.needs_table, confirmedLsn: rows[0]!.confirmed_lsn };
}

export interface SourceReport {
  readonly lagSeconds: number;
  readonly retainedBytes: number | null;
  readonly confirmedLsn: string | null;
  readonly accepted: number;
  readonly rejected: number;
  /** Seconds until the next report. */
  readonly everySeconds: number;
  /** What is wrong at the moment. Null: nothing. */
  readonly problem: string | null;
}

export async function reportSource(pool: Pool, name: string, report: SourceReport): Promise<void> {
  await pool.query({
    name: 'relay_report',
    text: `update posthorn.relay_sources
              set reported_at = now(), lag_seconds = $2, retained_bytes = $3,
                  confirmed_lsn = coalesce($4::pg_lsn, confirmed_lsn),
                  accepted = accepted + $5, rejected = rejected + $6, problem = $7, report_seconds = $8
            where name = $1`,
    values: [
      name,
      report.lagSeconds,
      report.retainedBytes,
      report.confirmedLsn,
      report.accepted,
      report.rejected,
      report.problem,
      report.everySeconds,
    ],
  });
}

/** Call this before a new slot is created: if the relay dies right after, the next one knows that it must read the table. */
export async function recordLostSlot(pool: Pool, name: string, slotWasLost: boolean): Promise<void> {
  await pool.query(
    `update posthorn.relay_sources
        set needs_table = true,
            lost_after = case when $2 then confirmed_lsn else lost_after end,
            lost_before = case when $2 then null else lost_before end,
            lost_at = case when $2 then now() else lost_at end
      where name = $1`,
    [name, slotWasLost],
  );
}

export async function recordNewSlot(pool: Pool, name: string, lsn: string): Promise<void> {
  await pool.query(
    `update posthorn.relay_sources
        set confirmed_lsn = $2::pg_lsn, lost_before = case when lost_at is not null then coalesce(lost_before, $2::pg_lsn) end
      where name = $1`,
    [name, lsn],
  );
}

export async function recordTableRead(pool: Pool, name: string): Promise<void> {
  await pool.query('update posthorn.relay_sources set needs_table = false where name = $1', [name]);
}

export async function recordRejected(
  pool: Pool,
  source: string,
  rejected: readonly { readonly id: string; readonly body: Buffer; readonly problem: string }[],
): Promise<void> {
  for (const { id, body, problem } of rejected) {
    await pool.query({
      name: 'relay_rejected',
      text: `insert into posthorn.relay_rejected (source, id, body, problem) values ($1, $2, $3, $4)
                 on conflict (source, id) do update
                set body = excluded.body, problem = excluded.problem, rejected_at = now()`,
      values: [source, id, body, problem],
    });
  }
}

export interface RelaySource {
  readonly name: string;
  readonly mode: RelayMode;
  /** Age of the oldest event that the relay has not stored yet. Grows while the relay is silent. */
  readonly lagSeconds: number;
  readonly silentSeconds: number;
  /** How much log the source keeps for the slot. Null: the relay polls. */
  readonly retainedBytes: number | null;
  readonly accepted: number;
  readonly rejected: number;
  readonly problem: string | null;
}

/** A relay that misses this many reports is down, and its lag grows. */
const MISSED_REPORTS = 3;

export async function listRelaySources(pool: Pool): Promise<RelaySource[]> {
  const { rows } = await pool.query<{
    name: string;
    mode: RelayMode;
    lag: number;
    silent: number;
    is_down: boolean;
    retained_bytes: string | null;
    accepted: string;
    rejected: string;
    problem: string | null;
  }>({
    name: 'relay_sources',
    text: `select name, mode, lag_seconds as lag, extract(epoch from now() - reported_at)::float8 as silent,
                  now() > reported_at + make_interval(secs => report_seconds * ${MISSED_REPORTS}) as is_down,
                  retained_bytes, accepted, rejected, problem
             from posthorn.relay_sources order by name`,
  });
  return rows.map((row) => ({
    name: row.name,
    mode: row.mode,
    lagSeconds: row.lag + (row.is_down ? row.silent : 0),
    silentSeconds: row.silent,
    retainedBytes: row.retained_bytes === null ? null : Number(row.retained_bytes),
    accepted: Number(row.accepted),
    rejected: Number(row.rejected),
    problem: row.problem,
  }));
}

export async function hasRelaySchema(pool: Pool): Promise<boolean> {
  const { rows } = await pool.query<{ there: boolean }>(
    `select exists (select from pg_attribute where attrelid = to_regclass('posthorn.relay_sources')
                                               and attname = 'report_seconds') as there`,
  );
  return rows[0]!.there;
}
