import type { Uuid } from './ids.ts';
import type { FieldError } from './problem.ts';

/** An event as it is sent. `data` is the producer's own JSON text: Posthorn never re-serializes it. */
export interface EventContent {
  readonly id: Uuid;
  readonly tenant: string;
  readonly type: string;
  readonly data: Buffer;
  readonly idempotencyKey: string | null;
  readonly schemaVersion: string | null;
  /** Extra request headers that the producer wants on every delivery of this event. */
  readonly headers: Readonly<Record<string, string>> | null;
  /** A test event, which its receiver must be able to tell from a real one. */
  readonly isTest?: boolean;
}

/** A validated event as its producer published it: the input of the accept stage. */
export interface NewEvent {
  readonly tenant: string;
  readonly type: string;
  readonly data: Buffer;
  readonly idempotencyKey: string | null;
  readonly schemaVersion: string | null;
  readonly channels: readonly string[];
  readonly endpointIds: readonly Uuid[] | null;
  readonly deliverAt: number | null;
  readonly headers: Readonly<Record<string, string>> | null;
  /** What is wrong with the payload, for an event that is stored nevertheless. Never empty. */
  readonly schemaErrors?: readonly FieldError[];
}

/**
 * An event that its producer has already committed, under an id that the producer knows. It cannot be rejected any more,
 * and the same id may arrive again after a crash or a lost answer: it is then still one event.
 */
export interface CommittedEvent extends NewEvent {
  readonly id: Uuid;
  /**
   * Its row in posthorn.outbox, or in posthorn.kafka_records if `record` is parked. The statement that stores the event
   * deletes the row. Null: the event comes from a relay or from a Kafka partition.
   */
  readonly outboxSeq: string | null;
  /** The Kafka record that it comes from. */
  readonly record?: EventRecordSource | undefined;
  /** True: it comes from the accept log, so a process of Posthorn made its id, and a client of the API may have got 202 for it. */
  readonly isFromAcceptLog?: boolean | undefined;
}

/** The Kafka partition that a batch of records comes from, while this process owns it. */
export interface PartitionBatch {
  readonly partitionId: number;
  /** The epoch of the ownership. A process that has lost the partition has an older one, and can write nothing. */
  readonly epoch: string;
  /** Where to read next when all events of the batch are stored. */
  readonly upTo: string;
  /** How many events the batch has. */
  readonly events: number;
}

export type EventRecordSource =
  /** Read from its partition. The commit also moves the position in the partition. */
  | { readonly kind: 'partition'; readonly batch: PartitionBatch; readonly offset: string }
  /** A parked record. `outboxSeq` is its row in posthorn.kafka_records, which the commit deletes. */
  | { readonly kind: 'parked' };

/**
 * Why an event is sent to no endpoint: none subscribes to it, channels or filters leave it out, or all that match are
 * disabled.
 */
export type UnmatchedReason = 'no_endpoint' | 'filtered' | 'disabled';
export const unmatchedReasons: readonly UnmatchedReason[] = ['no_endpoint', 'filtered', 'disabled'];

export const MAX_EVENT_TYPE_LENGTH = 128;
export const EVENT_TYPE = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/;
/** A type that producers may publish: `posthorn.` is reserved. */
export const PUBLISHED_TYPE = new RegExp(`^(?!posthorn\\.)${EVENT_TYPE.source.slice(1)}`);
export const EVENT_PATTERN = /^(\*|[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*(\.\*)?)$/;

export const MAX_EVENT_PATTERN_LENGTH = MAX_EVENT_TYPE_LENGTH + 2;
export const EVENT_PATTERN_RULE = 'must be "*", an event type, or a prefix such as "order.*"';

/** Only Posthorn itself publishes types with this prefix (operational events). */
export const RESERVED_TYPE_PREFIX = 'posthorn.';

export function isEventType(text: string): boolean {
  return text.length <= MAX_EVENT_TYPE_LENGTH && EVENT_TYPE.test(text);
}

/** A subscription: `*`, an exact type, or a prefix that ends in `.*`. */
export function isEventPattern(text: string): boolean {
  return text.length <= MAX_EVENT_PATTERN_LENGTH && EVENT_PATTERN.test(text);
}

/** `*` does not match Posthorn's own events: an endpoint must name those. */
export function matchesType(pattern: string, type: string): boolean {
  if (pattern === '*') return !type.startsWith(RESERVED_TYPE_PREFIX);
  if (pattern.endsWith('.*')) return type.startsWith(pattern.slice(0, -1));
  return pattern === type;
}

/** Returns all patterns that match the type: `order.paid`, `order.*` and `*`. */
export function patternsMatching(type: string): string[] {
  const segments = type.split('.');
  const prefixes = segments.slice(0, -1).map((_, index) => `${segments.slice(0, index + 1).join('.')}.*`);
  return [type, ...prefixes, ...(type.startsWith(RESERVED_TYPE_PREFIX) ? [] : ['*'])];
}

export const DEFAULT_TENANT = 'default';
export const TENANT_ID = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/;

export const TENANT_ID_RULE =
  'must be 1 to 128 letters, digits, or any of . _ : - and start with a letter or digit';

export function isTenantId(text: string): boolean {
  return TENANT_ID.test(text);
}
