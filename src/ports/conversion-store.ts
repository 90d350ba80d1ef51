/**
 * Converted payloads. Where a converter ran, its result is stored before the request is sent, once per event, version and
 * hash of the converters. Attempts refer to it by the header `posthorn-conversion`. It is deleted with the payload of its event.
 */
import type { Uuid } from '../domain/ids.ts';

export interface ConversionKey {
  readonly eventId: Uuid;
  /** The version that the payload was converted to. */
  readonly version: string;
  /** Hash of the converters. */
  readonly converter: string;
}

export interface StoredConversion extends ConversionKey {
  readonly data: Buffer;
}

/** Key of the map that `keep` returns. */
export const conversionName = ({ eventId, version, converter }: ConversionKey): string =>
  `${eventId} ${version} ${converter}`;

export interface SentQuery {
  readonly deliveryId: Uuid;
  /** Only attempts with a greater number: those since the delivery was accepted or last replayed. */
  readonly afterAttempt: number;
}

export interface ConversionStore {
  /**
   * Stores results and returns what is stored, by `conversionName`: of two processes that convert the same event, the first
   * one wins. Null: the payload of the event was deleted. Missing: another transaction has locked the event; try again later.
   */
  keep(conversions: readonly StoredConversion[]): Promise<Map<string, Buffer | null>>;

  /** Returns what is stored under a key. Null: nothing. */
  find(key: ConversionKey): Promise<Buffer | null>;

  /** Returns what the latest of these attempts that was converted was sent with. Deliveries without one are missing. */
  findSent(queries: readonly SentQuery[]): Promise<Map<Uuid, StoredConversion>>;
}
