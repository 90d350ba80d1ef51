/** Figures of regions and for autoscaling (docs/scale-out.md#autoscaling). */
import type { Config } from './config/index.ts';
import type { Engine } from './create-engine.ts';
import type { Ingest } from './create-ingest.ts';
import type { QueueDepth, WaitingDeliveries } from './dispatch/index.ts';
import { shardOfLane } from './domain/endpoint.ts';
import type { Uuid } from './domain/ids.ts';
import { DEFAULT_REGION, DEFAULT_REGION_NAME, regionOf } from './domain/region.ts';
import type { LaneReader } from './ports/delivery-queue.ts';
import type { EndpointDirectory } from './ports/endpoint-directory.ts';
import type { RegionStatus } from './postgres/queries/regions.ts';
import type { Add } from './telemetry/metrics/index.ts';

/** Shards of another region, for which a worker of the default region stands in. No region can have this name. */
const STAND_IN = 'stand_in';
/** Of a region without workers: how many endpoints are counted, and how many deliveries of each. */
const MAX_ENDPOINTS = 1_000;
const ENDPOINTS_PER_READ = 100;
const MAX_PER_ENDPOINT = 1_000;

type Waiting = Pick<WaitingDeliveries, 'fresh' | 'oldestFresh' | 'firstDue'>;

export interface RegionFigures {
  readonly regions: readonly RegionStatus[];
  /** What waits in regions that nobody sends for, by name. */
  readonly unserved: ReadonlyMap<string, Waiting>;
}

const nameOf = (region: string | null): string => region ?? DEFAULT_REGION_NAME;

export function addShards(add: Add, { ownership }: Pick<Engine, 'ownership'>, { region }: Config): void {
  const counts = new Map([[nameOf(region), 0]]);
  for (const shard of ownership.ownedShards) {
    const isStandIn = region === null && regionOf(shard) !== DEFAULT_REGION;
    const name = isStandIn ? STAND_IN : nameOf(region);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  for (const [name, count] of counts) add('posthorn_shards_owned', count, { region: name });
}

/** What waits for the API: events that are not committed yet. */
export function addAcceptWork(add: Add, { acceptor }: Pick<Ingest, 'acceptor'>): void {
  const labels = { role: 'api', region: DEFAULT_REGION_NAME };
  add('posthorn_work_waiting', acceptor.waitingEvents, labels);
  add('posthorn_work_oldest_age_seconds', acceptor.longestWaitMs / 1000, labels);
}

/** What waits for workers: deliveries that can be sent. Retries count only by their age, when they are overdue. */
export function addDeliveryWork(
  add: Add,
  { regions }: QueueDepth,
  now: number,
  own: Pick<Config, 'region' | 'role'>,
): void {
  if (own.role !== 'api' && !regions.has(own.region)) addWaiting(add, nameOf(own.region), NOTHING, now);
  for (const [region, waiting] of regions) addWaiting(add, nameOf(region), waiting, now);
}

const NOTHING: Waiting = {
  fresh: 0,
  oldestFresh: Number.POSITIVE_INFINITY,
  firstDue: Number.POSITIVE_INFINITY,
};

function addWaiting(add: Add, region: string, { fresh, oldestFresh, firstDue }: Waiting, now: number): void {
  const labels = { role: 'worker', region };
  add('posthorn_work_waiting', fresh, labels);
  add('posthorn_work_oldest_age_seconds', Math.max(0, now - Math.min(oldestFresh, firstDue)) / 1000, labels);
}

/** Called by the leader only. */
export function addRegions(add: Add, { regions, unserved }: RegionFigures, now: number): void {
  for (const { name, workers, isUsed } of regions)
    if (isUsed) add('posthorn_region_workers', workers, { region: name });
  for (const [region, waiting] of unserved) addWaiting(add, region, waiting, now);
}

/** Counts what waits in regions that nobody sends for, so that an autoscaler can start the first worker. */
export async function measureRegions(
  regions: readonly RegionStatus[],
  {
    endpoints,
    queue,
  }: {
    readonly endpoints: Pick<EndpointDirectory, 'all'>;
    readonly queue: Pick<LaneReader, 'countWaiting'>;
  },
): Promise<RegionFigures> {
  const unserved = new Map<string, Waiting>();
  for (const { name, number, isServed, isUsed } of regions) {
    if (isServed || !isUsed) continue;
    const ids: Uuid[] = [];
    for (const endpoint of endpoints.all()) {
      const { id, enabled, paused, deleted } = endpoint;
      if (regionOf(shardOfLane(endpoint)) !== number || !enabled || paused || deleted) continue;
      if (ids.push(id) === MAX_ENDPOINTS) break;
    }
    unserved.set(name, await countWaiting(ids, queue));
  }
  return { regions, unserved };
}

async function countWaiting(ids: readonly Uuid[], queue: Pick<LaneReader, 'countWaiting'>): Promise<Waiting> {
  let sum = NOTHING;
  for (let i = 0; i < ids.length; i += ENDPOINTS_PER_READ)
    for (const count of await queue.countWaiting(ids.slice(i, i + ENDPOINTS_PER_READ), MAX_PER_ENDPOINT))
      sum = {
        fresh: sum.fresh + count.fresh,
        oldestFresh: Math.min(sum.oldestFresh, count.oldestFresh),
        firstDue: Math.min(sum.firstDue, count.firstDue),
      };
  return sum;
}
