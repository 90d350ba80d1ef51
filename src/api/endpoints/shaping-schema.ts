/** `batch` of an endpoint: as callers send it, and as the API shows it. */
import { type Static, Type } from 'typebox';
import {
  type BatchSettings,
  DEFAULT_BATCH_BYTES,
  DEFAULT_BATCH_EVENTS,
  DEFAULT_BATCH_WAIT_MS,
  MAX_BATCH_BYTES,
  MAX_BATCH_EVENTS,
  MAX_BATCH_WAIT_MS,
  MIN_BATCH_BYTES,
} from '../../domain/batch.ts';

const batch = {
  max_events: Type.Integer({
    minimum: 1,
    maximum: MAX_BATCH_EVENTS,
    default: DEFAULT_BATCH_EVENTS,
    description: 'A request carries at most this many events.',
  }),
  max_wait_ms: Type.Integer({
    minimum: 0,
    maximum: MAX_BATCH_WAIT_MS,
    default: DEFAULT_BATCH_WAIT_MS,
    description: 'A batch that is not full is sent when its oldest event has waited for this long.',
  }),
  max_bytes: Type.Integer({
    minimum: MIN_BATCH_BYTES,
    maximum: MAX_BATCH_BYTES,
    default: DEFAULT_BATCH_BYTES,
    description: 'Maximum size of the body. A larger event goes alone.',
  }),
  split_rejected: Type.Boolean({
    default: true,
    description:
      'True: a batch that the receiver rejects (4xx) is sent again in halves, until the rejected event is alone.',
  }),
};

export const BatchSchema = Type.Object(
  {
    max_events: Type.Optional(batch.max_events),
    max_wait_ms: Type.Optional(batch.max_wait_ms),
    max_bytes: Type.Optional(batch.max_bytes),
    split_rejected: Type.Optional(batch.split_rejected),
  },
  {
    additionalProperties: false,
    description:
      'Several events in one request: `{"id": "bat_…", "events": [envelope, …]}`. Null: one event per request.',
  },
);

export const ShownBatch = Type.Object(batch, { title: 'Batch' });

export const showBatch = (settings: BatchSettings | null): Static<typeof ShownBatch> | null =>
  settings && {
    max_events: settings.maxEvents,
    max_wait_ms: settings.maxWaitMs,
    max_bytes: settings.maxBytes,
    split_rejected: settings.splitRejected,
  };
