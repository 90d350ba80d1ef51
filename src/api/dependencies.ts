import type { EgressPolicy } from '../deliver/index.ts';
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import type { ProblemCode } from '../domain/problem.ts';
import type { Acceptor, ReadLimits } from '../ingest/index.ts';
import type { EndpointChallenges } from '../manage/endpoint-challenges.ts';
import type { OutboxLag } from '../outbox/index.ts';
import type { Pool } from '../postgres/database.ts';
import type { EndpointCache } from '../postgres/endpoint-cache.ts';
import type { RelaySource } from '../postgres/queries/relay-sources.ts';
import type { SecretBox } from '../postgres/secret-box.ts';
import type { LiveTail } from '../telemetry/live-tail/index.ts';
import type { Log } from '../telemetry/log.ts';
import type { Tracer } from '../telemetry/tracing.ts';
import type { Authenticator } from './http/authenticator.ts';
import type { IsTrustedProxy } from './http/client-address.ts';

export interface ApiMetrics {
  rejected(code: ProblemCode): void;
  /** Of the whole node: with several processes, of all of them. */
  text(): Promise<string>;
}

export interface StreamLimits {
  readonly clients: number;
  readonly clientsPerKey: number;
  readonly bufferBytes: number;
  readonly heartbeatMs: number;
}

import type { Inboxes } from './inbox/inboxes.ts';

/** What the routes work with; `app.ts` fills it in. */
export interface ApiContext {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly log: Log;
  readonly authenticator: Authenticator;
  readonly acceptor: Acceptor;
  readonly endpoints: EndpointCache;
  readonly secretBox: SecretBox;
  readonly egress: EgressPolicy;
  readonly challenges: EndpointChallenges;
  readonly publicUrl: string;
  /** Null: there is no built-in receiver. */
  readonly inboxes: Inboxes | null;
  readonly limits: ReadLimits & { readonly maxBatchBytes: number };
  readonly signatureOverlapMs: number;
  readonly discardUndoMs: number;
  readonly isTrustedProxy: IsTrustedProxy;
  readonly statsCacheMs: number;
  /** Of requests other than publishing. */
  readonly idempotency: { readonly ttlMs: number; readonly claimMs: number };
  readonly tail: Pick<LiveTail, 'join' | 'leave'>;
  readonly stream: StreamLimits;
  /** Something of this endpoint became due: tell whoever owns it. */
  readonly wake: (endpointId: Uuid) => void;
  /** Null: switched off. */
  readonly metrics: ApiMetrics | null;
  /** Null: switched off. */
  readonly tracer: Tracer | null;
  /** Null: ready. Otherwise what is missing. */
  readonly notReady: () => Promise<string | null>;
  readonly outboxLag: () => Promise<OutboxLag>;
  readonly relaySources: () => Promise<RelaySource[]>;
}
