/**
 * Batches: one request carries several events of an endpoint (docs/adr/0024-batches.md). Pure functions: which settings
 * apply, which events failed according to the receiver's answer, and how many bytes an event adds to the body.
 */
import type { Endpoint } from './endpoint.ts';
import type { EventContent } from './event.ts';
import type { Uuid } from './ids.ts';
import { idPrefixes, parsePublicId } from './ids.ts';
import type { AttemptOutcome } from './outcome.ts';

/** The setting as the user gave it. */
export interface BatchConfig {
  max_events?: number;
  max_wait_ms?: number;
  max_bytes?: number;
  split_rejected?: boolean;
}

export interface BatchSettings {
  readonly maxEvents: number;
  /** A batch that is not full is sent when its oldest event has waited for this long. */
  readonly maxWaitMs: number;
  /** Maximum size of the body. A larger event goes alone. */
  readonly maxBytes: number;
  /** True: a batch that the receiver rejects is split in halves until the rejected event is alone. */
  readonly splitRejected: boolean;
}

export const MAX_BATCH_EVENTS = 1000;
export const MAX_BATCH_WAIT_MS = 60_000;
export const MIN_BATCH_BYTES = 1024;
export const MAX_BATCH_BYTES = 16 * 1024 * 1024;
export const DEFAULT_BATCH_EVENTS = 100;
export const DEFAULT_BATCH_WAIT_MS = 1_000;
export const DEFAULT_BATCH_BYTES = 1024 * 1024;

export function resolveBatch(config: BatchConfig | undefined): BatchSettings | null {
  if (config === undefined) return null;
  return {
    maxEvents: config.max_events ?? DEFAULT_BATCH_EVENTS,
    maxWaitMs: config.max_wait_ms ?? DEFAULT_BATCH_WAIT_MS,
    maxBytes: config.max_bytes ?? DEFAULT_BATCH_BYTES,
    splitRejected: config.split_rejected ?? true,
  };
}

/** The content type by which a receiver says that its answer names the events that failed. */
export const BATCH_RESULT_TYPE = 'application/vnd.posthorn.batch-result+json';

/** A batch result with 1,000 event ids has 34 kB. */
export const BATCH_RESULT_CAP_BYTES = 64 * 1024;

/**
 * Returns the events that failed according to the answer: an empty set if the answer is not a batch result, null if it
 * is one that cannot be read. Ids that are not event ids are ignored.
 */
export function readBatchResult(
  outcome: Pick<AttemptOutcome, 'responseHeaders' | 'responseBody' | 'responseTruncated'>,
): ReadonlySet<Uuid> | null {
  const type = outcome.responseHeaders?.['content-type'] ?? '';
  if (type.split(';', 1)[0]!.trim().toLowerCase() !== BATCH_RESULT_TYPE) return NONE;
  if (outcome.responseTruncated) return null;
  let result: unknown;
  try {
    result = JSON.parse(outcome.responseBody?.toString() ?? '');
  } catch {
    return null;
  }
  const failed = (result as { failed?: unknown } | null)?.failed;
  if (!Array.isArray(failed)) return null;
  const ids = failed.map((id) => (typeof id === 'string' ? parsePublicId(idPrefixes.event, id) : null));
  return new Set(ids.filter((id) => id !== null));
}

const NONE: ReadonlySet<Uuid> = new Set();

/** `{"id":"evt_…","type":"","timestamp":"…","data":},` */
const ENVELOPE_BYTES = 100;
/** `,"schema_version":""`, the longest of the optional fields, with some room. */
const FIELD_BYTES = 24;
/** `,"url":"…"` of a thin envelope. */
const LINK_BYTES = 600;
/** `{"id":"bat_…","events":[]}` */
export const BATCH_FRAME_BYTES = 60;

/** An event whose data is known, or only the size of it. */
export type SizedContent = Pick<EventContent, 'type' | 'idempotencyKey' | 'schemaVersion'> & {
  readonly data: { readonly length: number };
};

/** An upper bound of the bytes that an event adds to the body of a batch. */
export function maxEnvelopeBytes(
  { payload, apiVersion }: Pick<Endpoint, 'payload' | 'apiVersion'>,
  { type, idempotencyKey, schemaVersion, data }: SizedContent,
): number {
  const fieldBytes = (text: string | null): number =>
    text === null ? 0 : FIELD_BYTES + Buffer.byteLength(JSON.stringify(text));
  const fields = fieldBytes(idempotencyKey) + fieldBytes(schemaVersion) + fieldBytes(apiVersion);
  return ENVELOPE_BYTES + type.length + fields + (payload === 'thin' ? LINK_BYTES : data.length);
}
