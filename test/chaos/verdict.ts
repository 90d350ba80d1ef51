/** The conditions that every run must meet. Pure functions from facts to complaints. */
import { eventIdOfDelivery, publicId } from '../../src/domain/ids.ts';
import type { RegisteredEndpoint } from './endpoints.ts';
import type { Fault, FaultKind } from './faults.ts';
import type { CircuitChange, Ownership, StoredAttempt } from './history.ts';
import { outOfOrder } from './order-verdict.ts';
import type { AcceptedEvent } from './producer.ts';
import { tooFast, WIRE_MS, withStartTimes } from './rate-verdict.ts';
import type { Arrival } from './receivers.ts';
import { changedBatches, perEvent, wronglyDebounced, wronglyRejected } from './shaping-verdict.ts';
import { TIMES } from './system.ts';

export interface Facts {
  readonly accepted: readonly AcceptedEvent[];
  readonly endpoints: readonly RegisteredEndpoint[];
  readonly arrivals: readonly Arrival[];
  readonly faults: readonly Fault[];
  readonly ownership: readonly Ownership[];
  readonly circuits: readonly CircuitChange[];
  readonly attempts: readonly StoredAttempt[];
  /** "event endpoint" of every dead letter that the API shows, with its reason. */
  readonly dead: ReadonlyMap<string, string>;
  /** "event endpoint" of every delivery that was debounced, and that of the one that was sent instead. */
  readonly debounced: ReadonlyMap<string, string>;
}

export interface Complaint {
  readonly about: string;
  /** The event that it is about, and another related one. Their rows are added to the report. */
  readonly event?: string;
  readonly other?: string;
  /** The endpoint it is about. */
  readonly endpoint?: string;
  readonly at?: number;
}

export interface Verdict {
  readonly complaints: Complaint[];
  /** Requests that repeat one with a 2xx answer, by the kind of fault that excuses them. */
  readonly duplicates: Partial<Record<FaultKind, number>>;
  /**
   * Requests that were started before their worker was suspended and sent after it was resumed, when another worker
   * owned the shard.
   */
  readonly lateSends: number;
}

/** Time between an answer and the commit that records it, on a busy machine. */
const SETTLE_LAG_MS = 700;
/** See `faults.ts`. */
const SMALLEST_CLOCK_JUMP_MS = 1000;
/** After a clock was corrected: time until the next answer of a database that may be starting. */
const SAME_CLOCK_MS = 3000;

export const pairOf = (event: string, endpoint: string): string => `${event} ${endpoint}`;
const byPairOf = (arrivals: readonly Arrival[]): Map<string, Arrival[]> =>
  Map.groupBy(arrivals, ({ event, endpoint }) => pairOf(event, endpoint));
export const isSuccess = ({ status }: Arrival): boolean => status !== null && status >= 200 && status < 300;

export function judge(given: Facts): Verdict {
  const facts = { ...given, attempts: byOneClock(given) };
  const byPair = byPairOf(perEvent(facts.arrivals));
  const byEndpoint = Map.groupBy(facts.arrivals, ({ endpoint }) => endpoint);
  const ownership = new OwnershipHistory(facts.ownership);
  const complaints: Complaint[] = [];
  const copies = new Copies(facts, ownership);

  complaints.push(...lost(facts, byPair));
  complaints.push(...takenForPoison(facts));
  complaints.push(...changedBatches(facts.arrivals));
  complaints.push(...wronglyRejected(facts));
  complaints.push(...staleStarts(facts, ownership));
  complaints.push(...slowTakeovers(facts, ownership));
  for (const endpoint of facts.endpoints) {
    const arrivals = byEndpoint.get(endpoint.name) ?? [];
    complaints.push(...copies.unexcused(endpoint, perEvent(arrivals)));
    complaints.push(
      ...wronglyDebounced(facts, endpoint, byPair, (arrival) => copies.isExcused(endpoint, arrival)),
    );
    complaints.push(...tooManyAtOnce(endpoint, arrivals, ownership));
    if (endpoint.fifo) complaints.push(...outOfOrder(facts, endpoint.name, arrivals));
    if (endpoint.rate !== null)
      complaints.push(...tooFast(endpoint, endpoint.rate, withStartTimes(facts, endpoint, arrivals)));
    if (endpoint.breaker) complaints.push(...twoProbes(facts, endpoint, arrivals));
  }
  return { complaints, duplicates: copies.duplicates, lateSends: copies.lateSends };
}

/**
 * Replaces the start time of attempts that a worker recorded with a wrong clock by their arrival time. After the clock
 * is right again, the worker still applies the old correction until the next answer of the database.
 */
function byOneClock({ attempts, arrivals, endpoints, faults }: Facts): StoredAttempt[] {
  const wrong = faults.filter(({ clockOf }) => clockOf !== undefined);
  const nameOf = new Map(endpoints.map(({ uuid, name }) => [uuid, name]));
  const arrived = Map.groupBy(arrivals, ({ event, endpoint, attempt }) => `${event} ${endpoint} ${attempt}`);
  return attempts.map((attempt) => {
    const mayBeWrong = wrong.filter(({ clockOf }) => clockOf === attempt.worker);
    if (mayBeWrong.length === 0) return attempt;
    const event = publicId('evt', eventIdOfDelivery(attempt.delivery));
    const copies = arrived.get(`${event} ${nameOf.get(attempt.endpoint)} ${attempt.number}`) ?? [];
    if (copies.some(({ at }) => Math.abs(at - attempt.at) < SMALLEST_CLOCK_JUMP_MS)) return attempt;
    const arrival = copies.find(({ at }) =>
      mayBeWrong.some(({ from, to }) => at >= from - WIRE_MS && at <= to + SAME_CLOCK_MS),
    );
    return arrival === undefined ? attempt : { ...attempt, at: arrival.at };
  });
}

/** ACC-1: every event with a 202 was received, or is dead with a reason, or another one was sent instead. */
export function lost(
  { accepted, arrivals, dead, debounced }: Facts,
  byPair = byPairOf(perEvent(arrivals)),
): Complaint[] {
  const complaints: Complaint[] = [];
  for (const { id, endpoints } of accepted) {
    for (const endpoint of endpoints) {
      const pair = pairOf(id, endpoint);
      if (dead.has(pair) || debounced.has(pair) || (byPair.get(pair) ?? []).some(isSuccess)) continue;
      const tried = byPair.get(pair)?.length ?? 0;
      complaints.push({
        about: `LOST: ${id} was accepted, and ${endpoint} never got it (${tried} tries arrived)`,
        event: id,
        endpoint,
      });
    }
  }
  return complaints;
}

/** Every receiver of a run can answer: a delivery that merely was on the wire while workers were killed is no poison. */
export function takenForPoison({ dead }: Pick<Facts, 'dead'>): Complaint[] {
  return [...dead].flatMap(([pair, reason]): Complaint[] => {
    if (reason !== 'worker_crash') return [];
    const [event, endpoint] = pair.split(' ');
    return [
      {
        about: `${event} to ${endpoint} is dead as if it had crashed its worker`,
        event: event!,
        endpoint: endpoint!,
      },
    ];
  });
}

class OwnershipHistory {
  readonly #byShard: Map<number, Ownership[]>;

  constructor(rows: readonly Ownership[]) {
    this.#byShard = Map.groupBy(rows, ({ shard }) => shard);
  }

  get shards(): readonly number[] {
    return [...this.#byShard.keys()];
  }

  of(shard: number): readonly Ownership[] {
    return this.#byShard.get(shard) ?? [];
  }

  ownerAt(shard: number, at: number): string | null {
    return this.of(shard).findLast(({ from }) => from <= at)?.owner ?? null;
  }

  /** True if the shard was taken from a worker that counted as dead within this time. */
  uncleanBefore(shard: number, at: number, withinMs: number): boolean {
    return this.of(shard).some(({ unclean, from }) => unclean && from <= at && from > at - withinMs);
  }
}

/** DSP-2: a worker starts only deliveries of its own shards, also after it was suspended and resumed. */
function staleStarts({ attempts, endpoints }: Facts, ownership: OwnershipHistory): Complaint[] {
  const TOLERANCE_MS = 20;
  const byId = new Map(endpoints.map((endpoint) => [endpoint.uuid, endpoint]));
  return attempts.flatMap((attempt): Complaint[] => {
    const endpoint = byId.get(attempt.endpoint);
    if (endpoint === undefined) return [];
    const mine = ownership
      .of(endpoint.shard)
      .some(
        ({ owner, from, to }) =>
          owner === attempt.worker && attempt.at >= from - TOLERANCE_MS && attempt.at <= to + TOLERANCE_MS,
      );
    if (mine) return [];
    const owner = ownership.ownerAt(endpoint.shard, attempt.at);
    const about = `${attempt.worker} started attempt ${attempt.number} of ${attempt.delivery} to ${endpoint.name} (${attempt.outcome}), whose shard ${endpoint.shard} belonged to ${owner ?? 'no worker'}`;
    const event = publicId('evt', eventIdOfDelivery(attempt.delivery));
    return [{ about, at: attempt.at, event, endpoint: endpoint.name }];
  });
}

/** DSP-2: the shards of a dead worker have a new owner within two seconds after its death was detected. */
function slowTakeovers({ faults }: Facts, ownership: OwnershipHistory): Complaint[] {
  const TAKEOVER_MS = 2000;
  const limits: Partial<Record<FaultKind, number>> = {
    kill_worker: TAKEOVER_MS,
    pause_worker: TIMES.deadAfterMs + TAKEOVER_MS,
  };
  return faults.flatMap(({ kind, hits, from, what }): Complaint[] => {
    const limitMs = limits[kind];
    if (limitMs === undefined) return [];
    const late = ownership.shards.filter((shard) => {
      const periods = ownership.of(shard);
      const held = periods.findLast((period) => period.from <= from);
      if (held?.owner == null || !hits.includes(held.owner)) return false;
      const next = periods.find((period) => period.from > from && period.owner !== null);
      return next === undefined || next.from > from + limitMs;
    });
    if (late.length === 0) return [];
    const about = `${what}: ${late.length} of its shards had no owner after ${limitMs} ms`;
    return [{ about, at: from }];
  });
}

/** DSP-2: an event may be sent twice only if it was in flight or unsettled when a fault hit its worker. */
class Copies {
  readonly duplicates: Partial<Record<FaultKind, number>> = {};
  lateSends = 0;
  readonly #faults: readonly Fault[];
  readonly #attempts: Map<string, StoredAttempt[]>;
  readonly #ownership: OwnershipHistory;

  constructor({ faults, attempts }: Facts, ownership: OwnershipHistory) {
    this.#faults = faults;
    this.#ownership = ownership;
    this.#attempts = Map.groupBy(attempts, ({ delivery, endpoint }) =>
      pairOf(publicId('evt', eventIdOfDelivery(delivery)), endpoint),
    );
  }

  unexcused(endpoint: RegisteredEndpoint, arrivals: readonly Arrival[]): Complaint[] {
    const complaints: Complaint[] = [];
    this.lateSends += arrivals.filter((arrival) => this.#late(endpoint, arrival) !== undefined).length;
    for (const copies of Map.groupBy(arrivals, ({ event }) => event).values()) {
      const first = copies.find(isSuccess);
      if (first === undefined) continue;
      for (const copy of copies.slice(copies.indexOf(first) + 1)) {
        const excuse = this.#excuse(endpoint, copies.slice(0, copies.indexOf(copy)), copy);
        if (excuse !== undefined) {
          this.duplicates[excuse.kind] = (this.duplicates[excuse.kind] ?? 0) + 1;
          continue;
        }
        const owner = this.#ownership.ownerAt(endpoint.shard, first.at);
        const late = copy.at - first.endedAt!;
        complaints.push({
          about: `${first.event} was sent to ${endpoint.name} again (attempt ${copy.attempt}, ${late} ms after a 2xx to attempt ${first.attempt}) though no fault had hit ${owner}`,
          event: first.event,
          endpoint: endpoint.name,
          at: copy.at,
        });
      }
    }
    return complaints;
  }

  /** True if a fault prevented the result of the request from being recorded in time. */
  isExcused(endpoint: RegisteredEndpoint, arrival: Arrival): boolean {
    return (this.#unsettled(endpoint, arrival) ?? this.#late(endpoint, arrival)) !== undefined;
  }

  #excuse(endpoint: RegisteredEndpoint, before: readonly Arrival[], copy: Arrival): Fault | undefined {
    for (const arrival of before) {
      const fault = this.#unsettled(endpoint, arrival) ?? this.#late(endpoint, arrival);
      if (fault !== undefined) return fault;
    }
    return this.#late(endpoint, copy);
  }

  /** The fault that prevented the result of a request from being recorded in time. */
  #unsettled(endpoint: RegisteredEndpoint, { at, endedAt }: Arrival): Fault | undefined {
    const owner = this.#ownership.ownerAt(endpoint.shard, at);
    const end = Math.min(endedAt ?? Number.POSITIVE_INFINITY, at + endpoint.timeoutMs);
    return this.#faults.find(
      (fault) => hit(fault, owner) && at <= fault.to + WIRE_MS && end >= fault.from - SETTLE_LAG_MS,
    );
  }

  /** The fault that suspended the worker after it had started the request and before it sent it. */
  #late(endpoint: RegisteredEndpoint, { event, at }: Arrival): Fault | undefined {
    const fault = this.#faults.find(
      ({ kind, to }) => kind === 'pause_worker' && at >= to && at <= to + WIRE_MS,
    );
    if (fault === undefined || hit(fault, this.#ownership.ownerAt(endpoint.shard, at))) return undefined;
    const attempts = this.#attempts.get(pairOf(event, endpoint.uuid)) ?? [];
    const started = attempts.some(
      (attempt) => hit(fault, attempt.worker) && Math.abs(attempt.at - fault.from) < WIRE_MS,
    );
    return started ? fault : undefined;
  }
}

const hit = ({ hits }: Fault, worker: string | null): boolean =>
  hits === 'all' || (hits !== 'none' && worker !== null && hits.includes(worker));

/** The interval of a request as the sender sees it: it ends at the deadline at the latest. */
function interval({ at, endedAt, status }: Arrival, timeoutMs: number): [number, number] {
  const answered = status !== null;
  const end = Math.min(endedAt ?? Number.POSITIVE_INFINITY, at + timeoutMs);
  return [at, answered ? end : Math.max(at, end - WIRE_MS)];
}

/**
 * DSP-3: at most `max_in_flight` requests at once; twice that within one deadline of an unclean take-over; FIFO always
 * one.
 */
function tooManyAtOnce(
  endpoint: RegisteredEndpoint,
  arrivals: readonly Arrival[],
  ownership: OwnershipHistory,
): Complaint[] {
  const { timeoutMs, fifo, shard, name } = endpoint;
  const limit = fifo ? 1 : endpoint.maxInFlight;
  const complaints: Complaint[] = [];
  let open: [number, Arrival][] = [];
  for (const arrival of arrivals) {
    const [at, end] = interval(arrival, timeoutMs);
    open = open.filter(([until]) => until > at);
    open.push([end, arrival]);
    if (open.length <= limit) continue;
    const excused = !fifo && ownership.uncleanBefore(shard, at, timeoutMs + 2 * WIRE_MS);
    if (open.length <= (excused ? 2 * limit : limit)) continue;
    const which = open.map(([, { event, attempt }]) => `${event} attempt ${attempt}`).join(', ');
    complaints.push({
      about: `${name} had ${open.length} requests open at once, allowed are ${limit}: ${which}`,
      event: arrival.event,
      other: open[0]![1].event,
      endpoint: name,
      at,
    });
  }
  return complaints;
}

/** HLT-1: an open circuit has one probe at a time. */
function twoProbes(
  { circuits }: Facts,
  endpoint: RegisteredEndpoint,
  arrivals: readonly Arrival[],
): Complaint[] {
  const complaints: Complaint[] = [];
  const changes = circuits.filter((change) => change.endpoint === endpoint.uuid);
  let openedAt: number | null = null;
  for (const change of [
    ...changes,
    { at: Number.POSITIVE_INFINITY, circuit: 'closed', endpoint: '' } as const,
  ]) {
    if (change.circuit !== 'closed') {
      openedAt ??= change.at;
      continue;
    }
    if (openedAt === null) continue;
    const from: number = openedAt;
    openedAt = null;
    let busyUntil = Number.NEGATIVE_INFINITY;
    for (const arrival of arrivals.filter(({ at }) => at > from && at < change.at)) {
      const [at, end] = interval(arrival, endpoint.timeoutMs);
      if (at < busyUntil) {
        complaints.push({
          about: `${endpoint.name} had two probes of an open circuit at once`,
          event: arrival.event,
          at,
        });
      }
      busyUntil = Math.max(busyUntil, end);
      // The endpoint has recovered: later requests are ordinary traffic, which the database records a moment later.
      if (isSuccess(arrival)) break;
    }
  }
  return complaints;
}
