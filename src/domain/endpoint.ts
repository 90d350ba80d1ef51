import type { BreakerSettings } from './breaker.ts';
import type { ClientCertificate, EndpointAuth } from './endpoint-auth.ts';
import type { Uuid } from './ids.ts';
import type { RetryPolicy } from './retry.ts';

export const SHARDS = 256;

/** The worker that owns this shard leads: it polls the outbox and reports metrics of the whole deployment. */
export const LEADER_SHARD = 0;

/** The shard of an endpoint is the last byte of its id, which is random: an even spread without storing anything. */
export function shardOf(endpointId: Uuid): number {
  return Number.parseInt(endpointId.slice(34), 16);
}

export const signatureProfiles = ['standard', 'standard-ed25519', 'hex', 'stripe', 'github'] as const;
export type SignatureProfile = (typeof signatureProfiles)[number];

/** A profile under other names, for receivers that already verify another sender's headers. Null: the profile's own. */
export interface CustomSignature {
  readonly profile: SignatureProfile;
  readonly header: string | null;
  readonly prefix: string | null;
}
export type SignatureSetting = SignatureProfile | CustomSignature;

/** How a receiver shows that it wants the requests, before an endpoint is registered. */
export const challenges = ['echo', 'cloudevents'] as const;
export type Challenge = (typeof challenges)[number];

export interface RateLimit {
  readonly perSecond: number;
  readonly burst: number;
}

export const disabledReasons = ['manual', 'gone', 'failing', 'dead_letters'] as const;
/** Why an endpoint is off: by hand, by its own 410, no success for days, too many dead letters. */
export type DisabledReason = (typeof disabledReasons)[number];

/** Where a tenant wants events sent, with every default filled in: what the engine works with. */
export interface Endpoint {
  readonly id: Uuid;
  readonly tenant: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly channels: readonly string[];
  /** As it was given (docs/filters.md); parsed by those that ask it. */
  readonly filter: Readonly<Record<string, unknown>> | null;
  readonly enabled: boolean;
  readonly disabledReason: DisabledReason | null;
  readonly paused: boolean;
  readonly deleted: boolean;
  readonly apiVersion: string | null;
  readonly payload: 'full' | 'thin';
  readonly headers: Readonly<Record<string, string>>;
  readonly auth: EndpointAuth | null;
  readonly certificate: ClientCertificate | null;
  readonly signature: SignatureSetting;
  readonly retry: RetryPolicy;
  readonly breaker: BreakerSettings | null;
  readonly timeoutMs: number;
  readonly maxInFlight: number;
  readonly rateLimit: RateLimit | null;
  readonly ordering: 'none' | 'fifo';
  readonly fifoOnDead: 'skip' | 'block';
  readonly followRedirects: number;
  /** Live signing secrets, newest first, as the customer knows them (`whsec_…`). */
  readonly secrets: readonly EndpointSecret[];
}

export interface EndpointSecret {
  readonly secret: string;
  readonly expiresAt: number | null;
}
