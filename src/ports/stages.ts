/**
 * The calls from one stage to the next. A stage never imports another stage, so these interfaces stand between them:
 * "go to implementation" leads from the caller to the next stage. `create-ingest.ts` and `create-engine.ts` connect them.
 */
import type { WaitingDelivery } from '../domain/delivery.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import type { Uuid } from '../domain/ids.ts';
import type { AttemptOutcome } from '../domain/outcome.ts';
import type { HealthChange, Settlement } from './delivery-queue.ts';
import type { Commit, CommittedDelivery } from './hand-over.ts';

/** From ingest to dispatch: routes deliveries that were just committed to the worker that owns them. */
export interface DeliveryRouter {
  /**
   * Called after each commit, before the events are answered. `commit` is null if an earlier try with an unknown outcome
   * stored the deliveries: their owner must look for them in the store, because they may be settled by now.
   */
  routeCommitted(deliveries: readonly CommittedDelivery[], commit: Commit | null): void;
}

export interface AttemptRequest {
  readonly endpoint: Endpoint;
  /** The event as it is sent, converted to the version that the endpoint pins. If the request carries a batch, its first event. */
  readonly event: EventContent;
  /** Headers about the version of the payload: its conversion, deprecation and sunset. Null: none. */
  readonly versionHeaders: Readonly<Record<string, string>> | null;
  /** Set if the request carries a batch: its id and all its events, in order. */
  readonly batch?: { readonly id: Uuid; readonly events: readonly EventContent[] };
  readonly deliveryId: Uuid;
  readonly number: number;
  readonly retryReason: string | null;
  /** How many debounced events this one replaces. */
  readonly debounced?: number;
  /** A shorter deadline than the endpoint's own, because the endpoint is slow. */
  readonly timeoutMs?: number | undefined;
  /** When the delivery became due. */
  readonly waitingSince: number;
  /** Checked again when the connection is open, because connecting may take seconds. */
  readonly maySend: () => boolean;
}

export interface ConversionRequest {
  readonly endpoint: Endpoint;
  readonly event: EventContent;
  readonly delivery: Pick<WaitingDelivery, 'id' | 'attempts' | 'attemptsBeforeReplay'>;
}

export type ConversionResult =
  | {
      readonly kind: 'ready';
      readonly event: EventContent;
      readonly headers: AttemptRequest['versionHeaders'];
    }
  /** The converter failed: the attempt fails with `conversion_failed`. */
  | { readonly kind: 'failed'; readonly message: string }
  /**
   * Not now: too many conversions wait, or the store does not answer. With `pausedForMs` the converter is paused for this long.
   * Other deliveries of the endpoint may go on.
   */
  | { readonly kind: 'busy'; readonly pausedForMs?: number }
  /** The payload was deleted meanwhile. */
  | { readonly kind: 'gone' };

/** From dispatch to convert: gives an event the version that its endpoint pins. */
export interface PayloadConverter {
  /** False for nearly all endpoints: their events are sent as they are. */
  needsConversion(endpoint: Endpoint): boolean;
  /** Calls `done` exactly once, possibly before it returns. */
  convert(request: ConversionRequest, done: (result: ConversionResult) => void): void;
  /** Returns the headers `deprecation` and `sunset` of a batch, with the earliest times of its events. Null: neither applies. */
  deprecationHeadersOf(events: readonly EventContent[]): AttemptRequest['versionHeaders'];
  /** Forgets the converted payloads of an event. */
  expunge(eventId: Uuid): void;
}

/** From dispatch to deliver. */
export interface RequestSender {
  /** Sends one request. Calls `done` exactly once, with an outcome for every failure. */
  send(request: AttemptRequest, done: (outcome: AttemptOutcome) => void): void;
}

/** From dispatch to settle: records the result of an attempt. */
export interface ResultRecorder {
  /** Calls `done` when the result is durable. `hasMoved` is false if another worker settled it. */
  settle(settlement: Settlement, health: HealthChange | null, done: (hasMoved: boolean) => void): void;
}

/** Results that cannot be recorded now, because another transaction holds a lock on one of their rows. */
export interface BlockedResultCounts {
  readonly blockedResults: number;
  countBlocked(endpointId: Uuid): number;
}
