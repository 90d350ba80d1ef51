export {
  type AttemptObserver,
  type AttemptRequest,
  Attempts,
  type SendRequest,
} from './attempts.ts';
export { CarefulShards } from './careful-shards.ts';
export { CommitRouter } from './commit-router.ts';
export { FactsPoller } from './facts-poller.ts';
export { Janitor } from './janitor.ts';
export type { Lane, LaneItem } from './lane.ts';
export { LaneBudget } from './lane-budget.ts';
export { LaneIntake, MAX_COMMIT_AGE_MS } from './lane-intake.ts';
export { LaneKeeper } from './lane-keeper.ts';
export { LaneRegistry } from './lane-registry.ts';
export { Ownership, type OwnershipListener } from './ownership.ts';
export { Payloads } from './payloads.ts';
export { type QueueDepth, QueueDepthCounter } from './queue-depth.ts';
export { RecentIds } from './recent-ids.ts';
export { Refill } from './refill.ts';
export { Scheduler } from './scheduler.ts';
export { ShardHandOver } from './shard-hand-over.ts';
export { SiblingSockets } from './sibling-sockets.ts';
export { StartLog } from './start-log.ts';
export { type HistoryChange, StoreHistory } from './store-history.ts';
export { Sweeper } from './sweeper.ts';
