/**
 * Deliveries of large fan-outs that `EventStore.append` has accepted but not written. They are written in slices, each in
 * its own short commit. A slice is written exactly once, even if several processes try to write it.
 */
import type { Uuid } from '../domain/ids.ts';
import type { NewDelivery, SkippedDelivery } from './event-store.ts';

/** The next endpoints of an event that have no delivery yet. */
export interface FanOutSlice {
  readonly eventId: Uuid;
  readonly tenant: string;
  /** The ordinal of the delivery to the first endpoint. */
  readonly firstOrdinal: number;
  readonly endpointIds: readonly Uuid[];
  /** True if all these endpoints were disabled when the event was accepted. */
  readonly wasDisabled: boolean;
  /** `deliver_at` of the event, in milliseconds since the epoch. */
  readonly deliverAt: number | null;
}

export interface SkippedWithReason extends SkippedDelivery {
  readonly reason: 'endpoint_disabled' | 'endpoint_deleted';
}

/** One delivery for each endpoint of a slice. */
export interface SliceDeliveries {
  readonly waiting: readonly NewDelivery[];
  readonly skipped: readonly SkippedWithReason[];
}

export type SliceResult =
  | 'written'
  /** Endpoints of the tenant have changed since `endpointVersion`. Nothing was written: refresh, then write again. */
  | 'stale'
  /** Another process has written the slice, or a part of it. */
  | 'gone'
  /** Another process writes a slice at this moment. Nothing was written. */
  | 'busy';

export interface FanOutStore {
  /**
   * Returns up to `maxEndpoints` endpoints of the next slice: the oldest of the tenant whose name follows `afterTenant`.
   * After the last tenant it begins again with the first. Null: every delivery is written.
   */
  findNext(afterTenant: string, maxEndpoints: number): Promise<FanOutSlice | null>;

  /** How many unwritten slices the tenant has, counted up to `max`. */
  countSlices(tenant: string, max: number): Promise<number>;

  /** Writes the deliveries of a slice in one commit, which also removes its endpoints from the unwritten ones. */
  write(slice: FanOutSlice, deliveries: SliceDeliveries, endpointVersion: number): Promise<SliceResult>;
}
