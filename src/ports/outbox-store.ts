/** Rows that `posthorn.publish` committed inside the caller's own transaction, in order, until they become events. */
import type { Uuid } from '../domain/ids.ts';

export interface OutboxRow {
  readonly seq: string;
  readonly id: Uuid;
  readonly tenant: string;
  readonly type: string;
  readonly data: Buffer;
  readonly idempotencyKey: string | null;
  /** As the caller passed it, unchecked. */
  readonly options: Readonly<Record<string, unknown>> | null;
}

export interface OutboxRead {
  /** Rows with a greater number than this. '0': from the beginning. */
  readonly afterSeq: string;
  /** Returns nothing unless the first row is at least this old. */
  readonly minAgeMs: number;
  readonly maxRows: number;
  readonly maxBytes: number;
  /** Skip the rows of these tenants. */
  readonly exceptTenants?: readonly string[];
}

export interface OutboxLag {
  /** Age of the oldest waiting row. 0 if there is none. */
  readonly lagMs: number;
  /** The oldest waiting row. Null if there is none. */
  readonly oldestSeq: string | null;
  /** How many rejected rows there are, counted up to 1,000. */
  readonly rejected: number;
}

export interface OutboxStore {
  /** Reads waiting rows in order, without locking them: `EventStore.append` deletes what it stores. */
  read(read: OutboxRead): Promise<OutboxRow[]>;
  /** Moves rows that cannot become events to the list of rejected ones, with the reason. */
  reject(rows: readonly { readonly seq: string; readonly reason: string }[]): Promise<void>;
  readLag(): Promise<OutboxLag>;
}
