/** `batch` and `debounce` of an endpoint: as callers send them, and as the API shows them. */
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
import {
  DEBOUNCE_KEY,
  DEBOUNCE_KEY_RULE,
  type DebounceSettings,
  debounceModes,
  MAX_DEBOUNCE_WAIT_MS,
  MAX_DEBOUNCE_WINDOW_MS,
} from '../../domain/debounce.ts';
import { withMessage } from '../http/validation.ts';

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

const debounce = {
  key: Type.String({
    minLength: 1,
    maxLength: 256,
    pattern: DEBOUNCE_KEY.source,
    ...withMessage(DEBOUNCE_KEY_RULE),
    description:
      'Path of the value that events have in common, such as `data.order_id`. Events without a value are sent as they are.',
  }),
  window_ms: Type.Integer({
    minimum: 1,
    maximum: MAX_DEBOUNCE_WINDOW_MS,
    description: 'Posthorn sends one of the events with the same key that it accepts within this time.',
  }),
  mode: Type.Enum([...debounceModes], {
    default: 'last',
    description:
      '`last`: the last one, when no other has come for `window_ms`. `first`: the first one, at once.',
  }),
  max_wait_ms: Type.Integer({
    minimum: 1,
    maximum: MAX_DEBOUNCE_WAIT_MS,
    description:
      'Mode `last`: a steady stream of events is held back for at most this long. Default: ten times `window_ms`.',
  }),
};

export const DebounceSchema = Type.Object(
  {
    key: debounce.key,
    window_ms: debounce.window_ms,
    mode: Type.Optional(debounce.mode),
    max_wait_ms: Type.Optional(debounce.max_wait_ms),
  },
  {
    additionalProperties: false,
    description:
      'Posthorn sends one of several events with the same key. The others end as `skipped` with the reason `debounced`. It cannot be combined with `batch` or `fifo`.',
  },
);

export const ShownDebounce = Type.Object(debounce, { title: 'Debounce' });

export const showDebounce = (settings: DebounceSettings | null): Static<typeof ShownDebounce> | null =>
  settings && {
    key: settings.key,
    window_ms: settings.windowMs,
    mode: settings.mode,
    max_wait_ms: settings.maxWaitMs,
  };
