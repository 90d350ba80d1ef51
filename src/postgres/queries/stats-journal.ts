/**
 * What a commit did, for the statistics: written by that commit itself (one row, however many events it was about) and
 * added up a little later. Either both are there or neither is, so nothing is counted twice and nothing is forgotten,
 * whoever is killed when.
 */
import { bucketOf } from '../../domain/histogram.ts';
import type { Uuid } from '../../domain/ids.ts';
import type { Verdict } from '../../domain/outcome.ts';
import type { Settlement } from '../../ports/delivery-queue.ts';
import type { Client } from '../database.ts';

/** One row, as JSON. Lists of lists: it is written with every commit, names would be half of it. */
export interface JournalEntry {
  /** Tenant, type, number of events. */
  readonly accepted?: readonly (readonly [string, string, number])[];
  /** Endpoint, tenant, type, and four numbers for each attempt: verdict, try, bucket of response and of delivery. */
  readonly attempts?: readonly (readonly [Uuid, string, string, readonly number[]])[];
  /** Endpoint, tenant, type, number of deliveries that died without a last attempt. */
  readonly dead?: readonly (readonly [Uuid, string, string, number])[];
}

export const NUMBERS_PER_ATTEMPT = 4;
export const VERDICTS: Readonly<Record<Verdict['kind'], number>> = { delivered: 0, retry: 1, dead: 2 };
/** Instead of a bucket: no response, or not delivered. */
export const NO_BUCKET = -1;

/** For the settle statement; null if there was no attempt. What died without one is counted by the statement itself. */
export function journalOf(settlements: readonly Settlement[]): string | null {
  const subjects = new Map<string, [Uuid, string, string, number[]]>();
  for (const { endpointId, tenant, verdict, agesFrom, attempt } of settlements) {
    if (attempt === null) continue;
    const { outcome, eventType, tries } = attempt;
    const key = endpointId + eventType;
    let subject = subjects.get(key);
    if (subject === undefined) {
      subject = [endpointId, tenant, eventType, []];
      subjects.set(key, subject);
    }
    // Where nothing answered and nothing was waited for there is no response time.
    const timed = outcome.statusCode !== null || outcome.error?.class === 'timeout';
    const tookMs = outcome.startedAt + outcome.durationMs - agesFrom;
    subject[3].push(
      VERDICTS[verdict.kind],
      tries,
      timed ? bucketOf(outcome.durationMs) : NO_BUCKET,
      verdict.kind === 'delivered' ? bucketOf(tookMs) : NO_BUCKET,
    );
  }
  return subjects.size === 0 ? null : JSON.stringify({ attempts: [...subjects.values()] });
}

/** For the accept statement. Counted here: in SQL it was a microsecond an event, this is a fifth of one. */
export function journalOfAccepted(events: readonly { tenant: string; type: string }[]): string {
  const subjects = new Map<string, [string, string, number]>();
  for (const { tenant, type } of events) {
    const key = `${tenant} ${type}`;
    const subject = subjects.get(key);
    if (subject === undefined) subjects.set(key, [tenant, type, 1]);
    else subject[2] += 1;
  }
  return JSON.stringify({ accepted: [...subjects.values()] });
}

/** As a part of a statement with a CTE `from` of deliveries that died without a last attempt. */
export const journalDeaths = (from: string): string => `
  insert into posthorn.stats_journal (counts)
  select json_build_object('dead', json_agg(json_build_array(endpoint_id, tenant, event_type, n)))::text
    from (select endpoint_id, tenant, event_type, count(*) as n from ${from} group by endpoint_id, tenant, event_type) as died
  having count(*) > 0`;

/** The same as a part of a statement with a list `from` of events that it stores. */
export const journalAccepted = (from: string): string => `
  insert into posthorn.stats_journal (counts)
  select json_build_object('accepted', json_agg(json_build_array(tenant, type, n)))::text
    from (select tenant, type, count(*) as n from ${from} group by tenant, type) as stored
  having count(*) > 0`;

// Oldest pages first, which is as good an order as any: adding up needs none.
const TAKE = {
  name: 'take_stats_journal',
  text: `
    delete from posthorn.stats_journal
     where ctid = any (array(select ctid from posthorn.stats_journal limit $1))
    returning extract(epoch from at)::float8 * 1000 as at, counts`,
};

/** As it was found: nobody has looked into it yet. */
export interface WrittenRow {
  readonly at: number;
  readonly counts: string;
}

export interface JournalRow {
  readonly at: number;
  readonly counts: JournalEntry;
}

/** Within the transaction that writes them into the figures. */
export async function takeJournal(client: Client, most: number): Promise<WrittenRow[]> {
  const { rows } = await client.query<WrittenRow>({ ...TAKE, values: [most] });
  return rows;
}

/** Rows that cannot be added up, within the transaction that took them. */
export async function setAside(
  client: Client,
  rows: readonly (WrittenRow & { readonly problem: string })[],
): Promise<void> {
  if (rows.length === 0) return;
  await client.query(
    `insert into posthorn.stats_unreadable (at, counts, problem)
     select to_timestamp(at / 1000), counts, problem from unnest($1::float8[], $2::text[], $3::text[]) as t(at, counts, problem)`,
    [rows.map(({ at }) => at), rows.map(({ counts }) => counts), rows.map(({ problem }) => problem)],
  );
}
