/**
 * One chaos run: the real system and real faults, and a check at the end whether anything was lost.
 *
 *   start everything ─▶ produce, while faults are inflicted ─▶ faults over, receivers well ─▶ queue empty ─▶ judge
 */
import { setTimeout as delay } from 'node:timers/promises';
import { isPossibleWith } from './broker-faults.ts';
import { Brokers } from './brokers.ts';
import { prepareSlowness } from './database-faults.ts';
import { deadLetters, endedTwice, everyShardIsOwned, nothingWaits, rejectedEvents } from './end-state.ts';
import { LATE, latePlan, plans, type RegisteredEndpoint, register } from './endpoints.ts';
import { type Fault, type FaultKind, Flapping, faultKinds, inflict, planOf } from './faults.ts';
import { keepHistory, readAttempts, readCircuits, readOwnership } from './history.ts';
import { Producer } from './producer.ts';
import { Random } from './random.ts';
import { type Receivers, startReceivers } from './receivers.ts';
import { readDebounced } from './shaping-verdict.ts';
import { Shop } from './shop.ts';
import { complaintsOfExits, describeStuck, tell } from './story.ts';
import { FIVE_MEMBERS, Postgres, System } from './system.ts';
import { until } from './until.ts';
import { type Complaint, judge } from './verdict.ts';

/** CHAOS_DATABASE_CLOCK=1 adds steps of the database's clock. */
const STEPS_CLOCK = process.env.CHAOS_DATABASE_CLOCK === '1';

export interface ChaosOptions {
  readonly seed: number;
  /**
   * The run takes at least this long, and has at least this many faults (in total and of each kind) and accepted
   * events.
   */
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
  /** Default: all kinds. */
  readonly kinds?: typeof faultKinds;
  readonly progress?: (line: string) => void;
  /** The file that is started as Posthorn. Default: the sources. */
  readonly program?: string;
  /** How many Kafka brokers accept events, with `POSTHORN_BACKBONE=kafka`. Default 0: PostgreSQL alone. */
  readonly brokers?: number;
}

export interface ChaosReport {
  readonly seed: number;
  readonly accepted: number;
  /** Those that a shop published in its transactions. */
  readonly ordered: number;
  readonly deliveries: number;
  readonly arrivals: number;
  readonly unknown: number;
  readonly dead: Record<string, number>;
  readonly debounced: number;
  readonly faults: Partial<Record<FaultKind, number>>;
  readonly duplicates: Partial<Record<FaultKind, number>>;
  readonly lateSends: number;
  readonly seconds: number;
  /** Empty if the run succeeded. Otherwise the failures with all that is known about them. */
  readonly story: string;
}

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const startedAt = Date.now();
  const postgres = await Postgres.start();
  const brokers = options.brokers ? await Brokers.start(options.brokers) : null;
  const system = new System(postgres, options.program, brokers);
  let receivers: Receivers | null = null;
  try {
    receivers = await startReceivers();
    await system.start({
      carefulAfterCrashes: options.careful === 'default' ? 3 : 100,
      members: FIVE_MEMBERS,
    });
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
  await prepareSlowness(system.postgres);

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
    const kinds = (options.kinds ?? faultKinds).filter(
      (kind) =>
        isPossibleWith(system.brokers?.all.length ?? 0, kind) &&
        (kind !== 'step_the_database_clock' || (STEPS_CLOCK && system.postgres.time.canBeSet)),
    );
    const plan = planOf(random, kinds);
    const countOf = (kind: FaultKind): number => faults.filter((fault) => fault.kind === kind).length;
    const inflicted = (): number => faults.filter(({ kind }) => kind !== 'receivers_flap').length;
    while (
      Date.now() - began < options.minMs ||
      inflicted() < options.minFaults ||
      producer.accepted.length < options.minEvents ||
      kinds.some((kind) => countOf(kind) < options.minOfEachKind)
    ) {
      await delay(random.between(0.2, 1) * options.restMs);
      await inflict(plan.next().value, { system, random, complaints }, faults);
      const minutes = ((Date.now() - began) / 60_000).toFixed(1);
      options.progress?.(
        `${minutes} min, ${inflicted()} faults, ${producer.accepted.length} events accepted, last: ${faults.findLast(({ kind }) => kind !== 'receivers_flap')!.what}`,
      );
      if (system.exits.length > 0) break;
    }
  } catch (error) {
    complaints.push(`The run was aborted: ${error instanceof Error ? error.message : error}`);
  }
  await changes.stop();
  await producer.stop();
  await shop.stop();
  await flapping.stop();
  for (const member of system.members) if (!member.running) await member.start();
  try {
    await until('all accepted events are stored', () => system.hasStoredAll(), options.drainMs);
    await until('the outbox and the queue are empty', () => nothingWaits(system.postgres), options.drainMs);
    await until('every shard has a living owner', () => everyShardIsOwned(system.postgres), 10_000);
  } catch (error) {
    stuck = await describeStuck(system, endpoints, (error as Error).message);
  }

  const dead = await deadLetters(system, endpoints);
  const ordered = await shop.ordered();
  complaints.push(
    ...(await shop.differences()),
    ...(await endedTwice(system.postgres)),
    ...(await rejectedEvents(system.postgres)),
  );
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
    debounced: await readDebounced(system.postgres, endpoints),
  };
  const verdict = judge(facts);
  const all: Complaint[] = [
    ...complaints.map((about) => ({ about })),
    ...complaintsOfExits(system.exits),
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
    debounced: facts.debounced.size,
    faults: count(faults.map(({ kind }) => kind)),
    duplicates: verdict.duplicates,
    lateSends: verdict.lateSends,
    seconds: Math.round((Date.now() - startedAt) / 1000),
    story: all.length === 0 ? '' : await tell(system, all, facts, began, options.seed),
  };
}

export function count<T extends string>(items: readonly T[]): Record<T, number> {
  const counts = {} as Record<T, number>;
  for (const item of items) counts[item] = (counts[item] ?? 0) + 1;
  return counts;
}

/**
 * Uses the API during the run: changes endpoints, which increments the version that accepts check, and creates some.
 */
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

  /** Requests a probe. Refused if one is on its way; sends a test event if nothing waits. */
  async #probe(id: string): Promise<void> {
    await this.#system.apiOnce('POST', `/v1/endpoints/${id}/probe`).catch(() => {});
  }

  async #run(): Promise<void> {
    let late = 0;
    for (let turn = 1; !this.#stopped; turn += 1) {
      if (turn % 10 === 0 && late < 3) {
        late += 1;
        // The producer uses the endpoint only after its creation was answered.
        this.#endpoints.push(await register(this.#system, this.#receivers, latePlan(late)));
      } else {
        const { id } = this.#random.pick(this.#endpoints);
        if (turn % 3 === 0) await this.#probe(id);
        else await this.#system.api('PATCH', `/v1/endpoints/${id}`, { metadata: { turn } });
      }
      await delay(this.#random.between(100, 800));
    }
  }
}
