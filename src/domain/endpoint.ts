import type { BatchSettings } from './batch.ts';
import type { BreakerSettings } from './breaker.ts';
import type { DebounceSettings } from './debounce.ts';
import type { ClientCertificate, EndpointAuth } from './endpoint-auth.ts';
import type { Uuid } from './ids.ts';
import type { NotifierConfig } from './notices.ts';
import type { RetryPolicy } from './retry.ts';

export const SHARDS = 256;

/** The worker that owns this shard leads: it polls the outbox and reports metrics of the whole deployment. */
export const LEADER_SHARD = 0;

/**
 * The shard of an endpoint in the default region is the last byte of its id, which is random: an even spread without
 * storing anything.
 */
export function shardOf(endpointId: Uuid): number {
  return Number.parseInt(endpointId.slice(34), 16);
}

/** The shard that the endpoint's lane is in. Only the owner of this shard may send to the endpoint. */
export const shardOfLane = ({ id, shard }: Pick<Endpoint, 'id' | 'shard'>): number => shard ?? shardOf(id);

/** The shard that the endpoint's lane should be in. */
export const wantedShardOf = ({ id, wantedShard }: Pick<Endpoint, 'id' | 'wantedShard'>): number =>
  wantedShard ?? shardOf(id);

/**
 * True if the region of the endpoint has changed and the owner of its lane has not handed the lane over yet. The lane of
 * a deleted endpoint stays where it is.
 */
export const isMoving = ({ shard, wantedShard, deleted }: Endpoint): boolean =>
  shard !== wantedShard && !deleted;

export const signatureProfiles = ['standard', 'standard-ed25519', 'hex', 'stripe', 'github'] as const;
export type SignatureProfile = (typeof signatureProfiles)[number];

/** A profile with another header and prefix, for receivers that already verify another sender. Null: the profile's own. */
export interface CustomSignature {
  readonly profile: SignatureProfile;
  readonly header: string | null;
  readonly prefix: string | null;
}
export type SignatureSetting = SignatureProfile | CustomSignature;

/** How a receiver confirms that it wants the requests, before an endpoint is created. */
export const challenges = ['echo', 'cloudevents'] as const;
export type Challenge = (typeof challenges)[number];

export interface RateLimit {
  readonly perSecond: number;
  readonly burst: number;
}

export const disabledReasons = ['manual', 'gone', 'failing', 'dead_letters'] as const;
/** Why an endpoint is disabled: by hand, after a 410, no success for days, too many dead letters. */
export type DisabledReason = (typeof disabledReasons)[number];

/** An endpoint with every default filled in, as the engine uses it. */
export interface Endpoint {
  readonly id: Uuid;
  readonly tenant: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly channels: readonly string[];
  /** Gets the operational events of all tenants. */
  readonly operator: boolean;
  /** As it was given (docs/filters.md), not parsed. */
  readonly filter: Readonly<Record<string, unknown>> | null;
  readonly enabled: boolean;
  readonly disabledReason: DisabledReason | null;
  readonly paused: boolean;
  readonly deleted: boolean;
  readonly apiVersion: string | null;
  readonly payload: 'full' | 'thin';
  readonly headers: Readonly<Record<string, string>>;
  /** Names of headers whose values are not secret. */
  readonly plainHeaders: readonly string[];
  readonly auth: EndpointAuth | null;
  readonly certificate: ClientCertificate | null;
  readonly signature: SignatureSetting;
  readonly retry: RetryPolicy;
  readonly breaker: BreakerSettings | null;
  readonly timeoutMs: number;
  readonly maxInFlight: number;
  /** True: Posthorn lowers the limits of the endpoint while it is consistently slow (DLV-3). */
  readonly isAdaptive: boolean;
  readonly rateLimit: RateLimit | null;
  /** The region whose workers should send to it. Null: the default region. */
  readonly region: string | null;
  /** The shard that its lane is in, if it is not in the default region: see `shardOfLane`. */
  readonly shard: number | null;
  /** The shard that its lane should be in, if not in the default region. It differs from `shard` while the lane moves. */
  readonly wantedShard: number | null;
  /** Counts the changes of `shard` and `wantedShard`. */
  readonly placement: number;
  readonly ordering: 'none' | 'fifo';
  readonly fifoOnDead: 'skip' | 'block';
  readonly followRedirects: number;
  /** Null: one event per request. */
  readonly batch: BatchSettings | null;
  readonly debounce: DebounceSettings | null;
  /** Set if this is a notifier, which gets notices only. Its URL is `mailto:…` if it sends e-mail. */
  readonly notifier: NotifierConfig | null;
  /** Active signing secrets (`whsec_…`), newest first. */
  readonly secrets: readonly EndpointSecret[];
}

export interface EndpointSecret {
  readonly secret: string;
  readonly expiresAt: number | null;
  /**
   * With a profile that has room for one signature: from when on this secret signs the main header. Null: when no older
   * secret is left.
   */
  readonly mainFrom?: number | null;
  /** The setting that an older secret keeps. Null: that of the endpoint. */
  readonly signature?: SignatureSetting | null;
}
