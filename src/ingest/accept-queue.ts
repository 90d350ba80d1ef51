import type { PendingEvent } from './pending-event.ts';

/** Where admitted events wait until they are durable. */
export interface AcceptQueue {
  /** False: the events pass the accept stage once more when they are stored, which then reports them to observers. */
  readonly isStore: boolean;
  /** How long the first of the waiting events has waited. 0: none waits. */
  readonly waitedMs: number;
  /** Makes the event durable and answers it. */
  add(item: PendingEvent): void;
  /** Resolves when every event has been answered. */
  waitUntilIdle(): Promise<void>;
}

/** Memory that a pending event takes besides its payload. */
const EVENT_OVERHEAD_BYTES = 256;

export const bytesOf = ({ data }: { readonly data: Buffer }): number => data.length + EVENT_OVERHEAD_BYTES;
