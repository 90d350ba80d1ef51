export type { Stages } from './attempts.ts';
export type { Census } from './census.ts';
export { Dispatcher } from './dispatcher.ts';
export { FactsPoller } from './facts-poller.ts';
export { HandOn } from './hand-on.ts';
export type { Lane, LaneItem } from './lane.ts';
export { Ownership } from './ownership.ts';
