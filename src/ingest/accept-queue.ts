import type { PendingEvent } from './pending-event.ts';

/** Where admitted events wait until they are durable. */
export interface AcceptQueue {
  /** False: the log only keeps the events. They pass the accept stage again when they are stored, and it reports them to observers then. */
  readonly isStore: boolean;
  /** How long the oldest waiting event has waited. 0: none waits. */
  readonly waitedMs: number;
  /** Makes the event durable and answers it. */
  add(item: PendingEvent): void;
  /** Resolves when every event has been answered. */
  waitUntilIdle(): Promise<void>;
}

/** Memory that a pending event takes besides its payload. */
const EVENT_OVERHEAD_BYTES = 256;

export const bytesOf = ({ data }: { readonly data: Buffer }): number => data.length + EVENT_OVERHEAD_BYTES;
