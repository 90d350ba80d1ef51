export type { TailFilter } from './message.ts';
export { LiveTail, MAX_MISSED_ANNOUNCEMENTS, type Watcher } from './tail.ts';
export { TailChannels, type TailTransport } from './tail-channels.ts';
