/**
 * The durable composition of batches (docs/adr/0024-batches.md). A batch is recorded before its request is sent, and its
 * events never change under its id.
 *
 *   recordBatches(start) ──▶ open: a request may be on the wire ──recordBatches(ended)──▶ its composition is kept
 *
 * An open batch tells the next owner of the endpoint which events belong together if this worker dies. After a failed
 * attempt, `settle` stores the id of the batch with every delivery that is retried (`Settlement.batchId`).
 */
import type { Uuid } from '../domain/ids.ts';
import type { LoadedDelivery } from './delivery-queue.ts';

/** A batch whose request may be on the wire. */
export interface OpenBatch {
  readonly id: Uuid;
  readonly endpointId: Uuid;
  /** In the order of the body. */
  readonly deliveryIds: readonly Uuid[];
  readonly startedAt: number;
}

export interface StoredBatch {
  /** The deliveries as they were recorded, in the order of the body. Null: the batch was never sent. */
  readonly composition: readonly Uuid[] | null;
  /** Those of its deliveries that still wait, in order of acceptance. Some may belong to a newer batch by now. */
  readonly waiting: readonly LoadedDelivery[];
}

export interface BatchStart {
  readonly id: Uuid;
  readonly endpointId: Uuid;
  readonly shard: number;
  /** The worker's time, as in `Start`. */
  readonly at?: number;
  /** In the order of the body. `attempts` is a fence, as in `Start`. */
  readonly members: readonly { readonly deliveryId: Uuid; readonly attempts: number }[];
}

export interface BatchLog {
  /** Loads the open batches of these endpoints. */
  loadOpenBatches(endpointIds: readonly Uuid[]): Promise<OpenBatch[]>;

  loadBatch(id: Uuid): Promise<StoredBatch>;

  /**
   * Records starts and closes the batches in `ended`, in one commit. Returns the batches that may be sent: shard still
   * owned, every member still waiting with the same number of attempts, and recorded with the same members if at all.
   * Closes only batches of endpoints that the worker still owns.
   */
  recordBatches(
    starts: readonly BatchStart[],
    ended: readonly Uuid[],
    workerId: Uuid,
  ): Promise<ReadonlySet<Uuid>>;
}
