/** Describes a run that failed, with all that is known about it. */
import { deliveryRangeOfEvent, parsePublicId } from '../../src/domain/ids.ts';
import type { Exit } from './child.ts';
import type { RegisteredEndpoint } from './endpoints.ts';
import type { Postgres, System } from './system.ts';
import type { Complaint, Facts } from './verdict.ts';

const MAX_STORIES = 6;

export const complaintsOfExits = (exits: readonly Exit[]): Complaint[] =>
  exits.map(({ process, how, at, logTail }) => ({
    about: `${process} ended unexpectedly (${how}). The end of its log:\n${logTail}`,
    at,
  }));

export async function describeStuck(
  system: System,
  endpoints: readonly RegisteredEndpoint[],
  why: string,
): Promise<Complaint[]> {
  const names = new Map(endpoints.map(({ uuid, name }) => [uuid, name]));
  const rows = await system.postgres.query<Record<string, unknown> & { endpoint_id: string }>(`
    select q.endpoint_id, count(*)::int as waiting, min(q.seq)::int as lowest, min(q.attempts) as fewest_attempts,
           min(q.due_at) as due, max(q.started_at) as last_start, max(q.careful_starts) as careful_starts,
           h.circuit, h.next_probe_at, s.shard, s.epoch::int, w.name as owner, now() - w.renewed_at as owner_silent_for
      from posthorn.queue q
      left join posthorn.endpoint_health h on h.endpoint_id = q.endpoint_id
      left join posthorn.shards s on s.shard = get_byte(uuid_send(q.endpoint_id), 15)
      left join posthorn.workers w on w.id = s.owner
     group by q.endpoint_id, h.circuit, h.next_probe_at, s.shard, s.epoch, w.name, w.renewed_at`);
  const unowned = await system.postgres.query(`
    select s.shard, s.owner, s.epoch::int from posthorn.shards s
     where not exists (select from posthorn.workers w where w.id = s.owner and w.renewed_at > now() - interval '2 s') limit 5`);
  const lines = [
    ...rows.map((row) => `  ${names.get(row.endpoint_id) ?? '?'} ${JSON.stringify(row)}`),
    ...unowned.map((row) => `  shard without a living owner: ${JSON.stringify(row)}`),
  ];
  return [{ about: `STUCK: ${why}\n${lines.join('\n')}` }];
}

export async function tell(
  system: System,
  complaints: readonly Complaint[],
  { faults, arrivals, endpoints, accepted, ownership }: Facts,
  began: number,
  seed: number,
): Promise<string> {
  const clock = (at: number): string => `${((at - began) / 1000).toFixed(2)} s`;
  const lines = [`seed ${seed}: ${complaints.length} complaints`];
  for (const complaint of complaints.slice(0, MAX_STORIES)) {
    lines.push('', `* ${complaint.at === undefined ? '' : `at ${clock(complaint.at)}: `}${complaint.about}`);
    const endpoint = endpoints.find(({ name }) => name === complaint.endpoint);
    for (const event of [complaint.other, complaint.event]) {
      if (event === undefined) continue;
      const posted = accepted.find(({ id }) => id === event);
      if (posted !== undefined)
        lines.push(
          `    ${event}: posted at ${clock(posted.postedAt)}, accepted at ${clock(posted.acceptedAt)}`,
        );
      lines.push(...(await rowsOf(system.postgres, event, endpoint?.uuid ?? null, clock)));
      for (const arrival of arrivals) {
        if (arrival.event !== event || (endpoint !== undefined && arrival.endpoint !== endpoint.name))
          continue;
        const { at, attempt, status, endedAt } = arrival;
        const end = endedAt === null ? 'still open' : `${status ?? 'no answer'} at ${clock(endedAt)}`;
        lines.push(`    arrived at ${arrival.endpoint} at ${clock(at)}: attempt ${attempt}, ${end}`);
      }
    }
    if (endpoint !== undefined) {
      const owners = ownership.filter(({ shard }) => shard === endpoint.shard);
      const list = owners.map(({ from, owner, unclean }) => {
        const since = from === 0 ? 'at first' : `from ${clock(from)}`;
        return `${since} ${owner ?? 'nobody'}${unclean ? ' (unclean)' : ''}`;
      });
      lines.push(`    shard ${endpoint.shard}: ${list.join(', ')}`);
    }
  }
  if (complaints.length > MAX_STORIES)
    lines.push('', `… and ${complaints.length - MAX_STORIES} more`, ...kinds(complaints.slice(MAX_STORIES)));
  lines.push('', 'Faults (seconds since the start):');
  for (const { kind, what, from, to, recoveredAt } of faults.toSorted((a, b) => a.from - b.from)) {
    const times = kind === 'receivers_flap' ? '' : `, over at ${clock(to)}, recovered ${clock(recoveredAt)}`;
    lines.push(`  ${clock(from)}  ${kind}: ${what}${times}`);
  }
  return lines.join('\n');
}

const kinds = (complaints: readonly Complaint[]): string[] =>
  complaints.slice(0, 20).map(({ about }) => `  ${about.split('\n')[0]}`);

/** All rows of the database about one event. */
async function rowsOf(
  postgres: Postgres,
  event: string,
  endpoint: string | null,
  clock: (at: number) => string,
): Promise<string[]> {
  const uuid = parsePublicId('evt', event);
  if (uuid === null) return [];
  const range = deliveryRangeOfEvent(uuid);
  const lines: string[] = [];
  for (const table of ['queue', 'deliveries', 'dead_letters']) {
    for (const row of await postgres.query(
      `select * from posthorn.${table} where id between $1 and $2 and ($3::uuid is null or endpoint_id = $3)`,
      [...range, endpoint],
    ))
      lines.push(`    ${table}: ${JSON.stringify(row)}`);
  }
  const attempts = await postgres.query<{ at: number; line: string }>(
    `select extract(epoch from started_at)::float8 * 1000 as at,
            concat_ws(' ', delivery_id, '#' || number, outcome, status_code, error_class, duration_ms || ' ms', worker) as line
       from posthorn.attempts where delivery_id between $1 and $2 order by started_at`,
    [...range],
  );
  for (const { at, line } of attempts) lines.push(`    attempt at ${clock(at)}: ${line}`);
  if (lines.length === 0) lines.push('    The database has no row about it.');
  return lines;
}
