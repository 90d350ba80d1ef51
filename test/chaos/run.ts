/**
 * One chaos run: the real system, real faults, and at the end the question whether anything was lost.
 *
 *   start everything ─▶ produce, while faults are inflicted ─▶ faults over, receivers well ─▶ queue empty ─▶ judge
 */
import { setTimeout as delay } from 'node:timers/promises';
import { deliveryRangeOfEvent, parsePublicId } from '../../src/domain/ids.ts';
import { LATE, latePlan, plans, type RegisteredEndpoint, register } from './endpoints.ts';
import { type Fault, type FaultKind, Flapping, faultKinds, inflict, planOf } from './faults.ts';
import { keepHistory, readAttempts, readCircuits, readOwnership } from './history.ts';
import { Producer } from './producer.ts';
import { Random } from './random.ts';
import { type Receivers, startReceivers } from './receivers.ts';
import { Shop } from './shop.ts';
import { Postgres, System, until } from './system.ts';
import { type Complaint, type Facts, judge, pairOf } from './verdict.ts';

export interface ChaosOptions {
  readonly seed: number;
  /** At least this long, this many faults (and every kind this often), and this many accepted events. */
  readonly minMs: number;
  readonly minFaults: number;
  readonly minOfEachKind: number;
  readonly minEvents: number;
  readonly eventsPerSecond: number;
  /** Pause between two faults, at most. */
  readonly restMs: number;
  /** `default`: shards become careful after three unclean takeovers, as usual. */
  readonly careful: 'default' | 'never';
  readonly drainMs: number;
  readonly progress?: (line: string) => void;
}

export interface ChaosReport {
  readonly seed: number;
  readonly accepted: number;
  /** Of these, published in the transactions of a shop. */
  readonly ordered: number;
  readonly deliveries: number;
  readonly arrivals: number;
  readonly unknown: number;
  readonly dead: Record<string, number>;
  readonly faults: Partial<Record<FaultKind, number>>;
  readonly duplicates: Partial<Record<FaultKind, number>>;
  readonly lateSends: number;
  readonly seconds: number;
  /** Empty: the run was good. Otherwise what went wrong, with what is known about it. */
  readonly story: string;
}

const MAX_STORIES = 6;

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const startedAt = Date.now();
  const postgres = await Postgres.start();
  const system = new System(postgres);
  let receivers: Receivers | null = null;
  try {
    receivers = await startReceivers();
    await system.start({ carefulAfterCrashes: options.careful === 'default' ? 3 : 100 });
    return await run(system, receivers, options, startedAt);
  } finally {
    await system.stop();
    await receivers?.stop();
  }
}

async function run(
  system: System,
  receivers: Receivers,
  options: ChaosOptions,
  startedAt: number,
): Promise<ChaosReport> {
  const random = new Random(options.seed);
  const endpoints: RegisteredEndpoint[] = [];
  for (const plan of plans) endpoints.push(await register(system, receivers, plan));
  await keepHistory(system.postgres);

  const faults: Fault[] = [];
  const complaints: string[] = [];
  const producer = new Producer(system, endpoints, new Random(options.seed + 1));
  const types = endpoints.filter(({ fifo }) => !fifo).flatMap((endpoint) => endpoint.types);
  const flapping = new Flapping(
    receivers,
    new Random(options.seed + 2),
    endpoints.map(({ name }) => name),
    faults,
  );
  const changes = new EndpointChanges(system, receivers, endpoints, new Random(options.seed + 3));
  const shop = new Shop(system.postgres, endpoints, new Random(options.seed + 4));
  producer.start([...types, LATE], options.eventsPerSecond);
  await shop.start(types, options.eventsPerSecond / 7);
  flapping.start();
  changes.start();

  const began = Date.now();
  let stuck: Complaint[] = [];
  try {
    const plan = planOf(random);
    const countOf = (kind: FaultKind): number => faults.filter((fault) => fault.kind === kind).length;
    const inflicted = (): number => faults.filter(({ kind }) => kind !== 'receivers_flap').length;
    while (
      Date.now() - began < options.minMs ||
      inflicted() < options.minFaults ||
      producer.accepted.length < options.minEvents ||
      faultKinds.some((kind) => countOf(kind) < options.minOfEachKind)
    ) {
      await delay(random.between(0.2, 1) * options.restMs);
      await inflict(plan.next().value!, { system, random, complaints }, faults);
      const minutes = ((Date.now() - began) / 60_000).toFixed(1);
      options.progress?.(
        `${minutes} min, ${inflicted()} faults, ${producer.accepted.length} events accepted, last: ${faults.findLast(({ kind }) => kind !== 'receivers_flap')!.what}`,
      );
      if (system.exits.length > 0) break;
    }
  } catch (error) {
    complaints.push(`The run could not go on: ${error instanceof Error ? error.message : error}`);
  }
  await changes.stop();
  await producer.stop();
  await shop.stop();
  await flapping.stop();
  for (const member of system.members) if (!member.running) await member.start();
  try {
    await until('the outbox and the queue are empty', () => nothingWaits(system.postgres), options.drainMs);
    await until('every shard has a living owner', () => everyShardIsOwned(system.postgres), 10_000);
  } catch (error) {
    stuck = await describeStuck(system, endpoints, (error as Error).message);
  }

  const dead = await deadLetters(system, endpoints);
  const ordered = await shop.ordered();
  complaints.push(...(await shop.differences()));
  const accepted = [...producer.accepted, ...ordered];
  const facts = {
    accepted,
    endpoints,
    arrivals: await receivers.arrivals(),
    faults,
    ownership: await readOwnership(system),
    circuits: await readCircuits(system.postgres),
    attempts: await readAttempts(system),
    dead,
  };
  const verdict = judge(facts);
  const all: Complaint[] = [
    ...complaints.map((about) => ({ about })),
    ...system.exits.map(({ process, how, at, lastWords }) => ({
      about: `${process} ended by itself (${how}). Its last words:\n${lastWords}`,
      at,
    })),
    ...stuck,
    ...verdict.complaints,
  ];
  return {
    seed: options.seed,
    accepted: accepted.length,
    ordered: ordered.length,
    deliveries: accepted.reduce((sum, event) => sum + event.endpoints.length, 0),
    arrivals: facts.arrivals.length,
    unknown: producer.unknown,
    dead: count([...dead.values()]),
    faults: count(faults.map(({ kind }) => kind)),
    duplicates: verdict.duplicates,
    lateSends: verdict.lateSends,
    seconds: Math.round((Date.now() - startedAt) / 1000),
    story: all.length === 0 ? '' : await tell(system, all, facts, began, options),
  };
}

function count<T extends string>(items: readonly T[]): Record<T, number> {
  const counts = {} as Record<T, number>;
  for (const item of items) counts[item] = (counts[item] ?? 0) + 1;
  return counts;
}

/** Meanwhile somebody works with the API: changes endpoints, which moves the version all accepts depend on, and adds some. */
class EndpointChanges {
  readonly #system: System;
  readonly #receivers: Receivers;
  readonly #endpoints: RegisteredEndpoint[];
  readonly #random: Random;
  #stopped = false;
  #running: Promise<void> | null = null;

  constructor(system: System, receivers: Receivers, endpoints: RegisteredEndpoint[], random: Random) {
    this.#system = system;
    this.#receivers = receivers;
    this.#endpoints = endpoints;
    this.#random = random;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    let late = 0;
    for (let turn = 1; !this.#stopped; turn += 1) {
      if (turn % 10 === 0 && late < 3) {
        late += 1;
        // The producer sees it only now that its creation has been answered.
        this.#endpoints.push(await register(this.#system, this.#receivers, latePlan(late)));
      } else {
        const { id } = this.#random.pick(this.#endpoints);
        await this.#system.api('PATCH', `/v1/endpoints/${id}`, { metadata: { turn } });
      }
      await delay(this.#random.between(100, 800));
    }
  }
}

async function nothingWaits(postgres: Postgres): Promise<boolean> {
  const [row] = await postgres.query<{ waiting: boolean }>(
    'select exists (select from posthorn.queue) or exists (select from posthorn.outbox) as waiting',
  );
  return !row!.waiting;
}

async function everyShardIsOwned(postgres: Postgres): Promise<boolean> {
  const [row] = await postgres.query<{ free: boolean }>(
    `select exists (select from posthorn.shards s where not exists
       (select from posthorn.workers w where w.id = s.owner and w.renewed_at > now() - interval '2 s')) as free`,
  );
  return !row!.free;
}

async function deadLetters(
  system: System,
  endpoints: readonly RegisteredEndpoint[],
): Promise<Map<string, string>> {
  const names = new Map(endpoints.map(({ id, name }) => [id, name]));
  const dead = new Map<string, string>();
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? '' : `&cursor=${cursor}`;
    const page: {
      data: { event_id: string; endpoint_id: string; reason: string | null }[];
      next_cursor: string | null;
    } = await system.api('GET', `/v1/deliveries?status=dead&limit=250${query}`);
    for (const { event_id, endpoint_id, reason } of page.data) {
      if (reason !== null) dead.set(pairOf(event_id, names.get(endpoint_id) ?? endpoint_id), reason);
    }
    cursor = page.next_cursor;
  } while (cursor !== null);
  return dead;
}

// --- the story ----------------------------------------------------------------------------------------------

async function describeStuck(
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

async function tell(
  system: System,
  complaints: readonly Complaint[],
  { faults, arrivals, endpoints, accepted, ownership }: Facts,
  began: number,
  { seed }: ChaosOptions,
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
  lines.push('', 'What was done (seconds since the start):');
  for (const { kind, what, from, to, recoveredAt } of faults.toSorted((a, b) => a.from - b.from)) {
    const times = kind === 'receivers_flap' ? '' : `, over at ${clock(to)}, recovered ${clock(recoveredAt)}`;
    lines.push(`  ${clock(from)}  ${kind}: ${what}${times}`);
  }
  return lines.join('\n');
}

const kinds = (complaints: readonly Complaint[]): string[] =>
  complaints.slice(0, 20).map(({ about }) => `  ${about.split('\n')[0]}`);

/** Everything the database says about one event. */
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
  if (lines.length === 0) lines.push('    The database has no row of it.');
  return lines;
}
