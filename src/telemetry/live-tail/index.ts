export type { TailFilter } from './message.ts';
export { LiveTail, type Watcher } from './tail.ts';
