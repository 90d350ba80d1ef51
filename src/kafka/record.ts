/** A record of a Kafka topic, as the client read it. */
export interface KafkaRecord {
  readonly topic: string;
  readonly partition: number;
  readonly offset: bigint;
  /** The time of the record, in milliseconds since the epoch, from 1970 to 9999. */
  readonly timestampMs: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  /** In order. A name may appear more than once. */
  readonly headers: readonly KafkaHeader[];
}

/** The end of the year 9999, the last that RFC 3339 can express. PostgreSQL's limit is later. */
const LAST_TIME_MS = 253_402_300_799_999n;

/** Returns the nearest time that can be stored and shown. Kafka does not check the timestamps of producers. */
export const toRecordTime = (timestampMs: bigint): number =>
  timestampMs < 0n ? 0 : Number(timestampMs > LAST_TIME_MS ? LAST_TIME_MS : timestampMs);

export type KafkaHeader = readonly [name: string, value: Buffer | null];

/** Returns the last value of a header: a producer that adds a header again means to replace the earlier value. */
export function headerOf({ headers }: Pick<KafkaRecord, 'headers'>, name: string): string | null {
  return headers.findLast(([each]) => each === name)?.[1]?.toString() ?? null;
}
