/**
 * One run of the shop: it commits orders and publishes them in every possible way, while all processes are killed and
 * restarted. At the end each committed order must be exactly one event, and delivered.
 *
 *   start everything ─▶ orders, while faults are inflicted ─▶ shop closed ─▶ nothing waits anywhere ─▶ judge
 */
import { deadLetters, everyShardIsOwned, nothingWaits } from '../end-state.ts';
import { type EndpointPlan, plan, type RegisteredEndpoint, register } from '../endpoints.ts';
import { type Fault, Flapping } from '../faults.ts';
import { Random } from '../random.ts';
import { type Receivers, startReceivers } from '../receivers.ts';
import { count } from '../run.ts';
import { complaintsOfExits, describeStuck, tell } from '../story.ts';
import { Postgres, System } from '../system.ts';
import { until } from '../until.ts';
import { type Complaint, type Facts, lost } from '../verdict.ts';
import { FaultScheduler } from './fault-scheduler.ts';
import { compare, readEvents, readOrders, toAccepted } from './orders.ts';
import { typeOf, type WayName, wayNames } from './ways.ts';
import { World } from './world.ts';

export interface ShopChaosOptions {
  readonly seed: number;
  /** At least one round of faults, and as many as begin in this time. */
  readonly minMs: number;
  /** Pause between two faults, at most. */
  readonly restMs: number;
  /** Number of faults before everything is killed at once. Default: all kinds. */
  readonly faultsPerRound?: number;
  readonly ordersPerSecond: number;
  readonly drainMs: number;
  readonly progress?: (line: string) => void;
  /** The file that is started as Posthorn. Default: the sources. */
  readonly program?: string;
}

export interface ShopChaosReport {
  readonly seed: number;
  readonly orders: Record<WayName, number>;
  readonly events: number;
  readonly arrivals: number;
  readonly faults: Record<string, number>;
  readonly seconds: number;
  /** Empty if the run succeeded. Otherwise the failures with all that is known about them. */
  readonly story: string;
}

const plans: readonly EndpointPlan[] = wayNames.map((way) =>
  plan(way, { types: [typeOf(way)], maxInFlight: 8, timeoutMs: 1000 }),
);

const isInflicted = ({ kind }: Fault): boolean => kind !== 'receivers_flap';

export async function runShopChaos(options: ShopChaosOptions): Promise<ShopChaosReport> {
  const startedAt = Date.now();
  const [postgres, source] = await Promise.all([Postgres.start(), Postgres.start()]);
  const system = new System(postgres, options.program);
  const world = new World(system, source, options);
  let receivers: Receivers | null = null;
  try {
    receivers = await startReceivers();
    await system.start({
      carefulAfterCrashes: 100,
      members: [
        { role: 'worker', cabled: false },
        { role: 'all', cabled: false },
      ],
    });
    return await run(world, receivers, options, startedAt);
  } finally {
    await world.stop();
    await system.stop();
    await source.stop();
    await receivers?.stop();
  }
}

async function run(
  world: World,
  receivers: Receivers,
  options: ShopChaosOptions,
  startedAt: number,
): Promise<ShopChaosReport> {
  const { system } = world;
  const random = new Random(options.seed);
  const endpoints: RegisteredEndpoint[] = [];
  for (const what of plans) endpoints.push(await register(system, receivers, what));
  await world.start();

  const faults: Fault[] = [];
  const complaints: string[] = [];
  const names = endpoints.map(({ name }) => name);
  const flapping = new Flapping(receivers, new Random(options.seed + 1), names, faults);
  flapping.start();
  const began = Date.now();
  const scheduler = new FaultScheduler(world, random, faults, complaints);
  let rounds = 0;
  do {
    await scheduler.round(options.restMs, options.faultsPerRound);
    rounds += 1;
    const minutes = ((Date.now() - began) / 60_000).toFixed(1);
    options.progress?.(`${minutes} min, ${rounds} rounds, ${faults.filter(isInflicted).length} faults`);
  } while (Date.now() - began < options.minMs && system.exits.length === 0);
  const how = await world.shop.stop();
  if (how !== 'exit code 0') complaints.push(`The shop closed with ${how}`);
  await flapping.stop();
  let stuck: Complaint[] = [];
  try {
    await until("the shop's database is read", async () => (await world.unread()) === null, options.drainMs);
    await until('the outbox and the queue are empty', () => nothingWaits(system.postgres), options.drainMs);
    await until('every shard has a living owner', () => everyShardIsOwned(system.postgres), 10_000);
  } catch (error) {
    const why = `${(error as Error).message} ${(await world.unread()) ?? ''}`;
    stuck = await describeStuck(system, endpoints, why);
  }

  const orders = await readOrders([system.postgres, world.source]);
  const events = await readEvents(system.postgres);
  const namesFor = (type: string): string[] =>
    endpoints.filter(({ types }) => types.includes(type)).map(({ name }) => name);
  const facts: Facts = {
    accepted: toAccepted(orders, events, namesFor),
    endpoints,
    arrivals: await receivers.arrivals(),
    faults,
    // The other run checks how deliveries are made.
    ownership: [],
    circuits: [],
    attempts: [],
    dead: await deadLetters(system, endpoints),
    debounced: new Map(),
  };
  const all: Complaint[] = [
    ...complaints.map((about) => ({ about })),
    ...complaintsOfExits(system.exits),
    ...stuck,
    ...compare(orders, events),
    ...[...facts.dead].map(([pair, reason]) => ({ about: `DEAD: ${pair}: ${reason}` })),
    ...lost(facts),
  ];
  return {
    seed: options.seed,
    orders: count(orders.map(({ way }) => way)),
    events: events.length,
    arrivals: facts.arrivals.length,
    faults: count(faults.filter(isInflicted).map(({ kind }) => kind)),
    seconds: Math.round((Date.now() - startedAt) / 1000),
    story: all.length === 0 ? '' : await tell(system, all, facts, began, options.seed),
  };
}
