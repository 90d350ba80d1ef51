import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../domain/clock.ts';
import { idPrefixes, publicId, type Uuid } from '../../domain/ids.ts';
import { Problem } from '../../domain/problem.ts';
import type { TokenBucket } from '../../domain/token-bucket.ts';
import type { Pool } from '../../postgres/database.ts';
import { findKey, type KeyScope, touchKeys } from '../../postgres/queries/keys.ts';
import type { KeyRates } from './key-rates.ts';

/** Whoever made a request, and what they may do. */
export interface Caller {
  readonly keyId: Uuid | null;
  readonly scope: KeyScope;
  /** The one tenant that the key is for; null: all of them. */
  readonly tenant: string | null;
  /** The beginning of the key, by which people know it; not of the one in the configuration. */
  readonly prefix: string | null;
  /** Null: it has no limit. */
  readonly bucket: TokenBucket | null;
}

export function hashKey(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

/** 256 random bits behind a prefix that secret scanners can look for. */
export function newApiKey(): string {
  return `phk_${randomBytes(32).toString('base64url')}`;
}

export const shownPrefix = (key: string): string => key.slice(0, 10);

const ADMIN: Caller = { keyId: null, scope: 'admin', tenant: null, prefix: null, bucket: null };
const REMEMBER_MS = 10_000;
const REMEMBER_AT_MOST = 10_000;
const TOUCH_EVERY_MS = 30_000;

/**
 * Keys are looked up by their hash and remembered for some seconds, so that a producer's requests cost no read.
 * Revoking one clears the memory of every process at once (`posthorn_keys`); the seconds are only for when that
 * message is lost.
 */
export class Authenticator {
  readonly #pool: Pool;
  readonly #clock: Clock;
  readonly #adminHash: Buffer;
  readonly #rates: KeyRates;
  readonly #remembered = new Map<string, { caller: Caller; until: number }>();
  /** Keys that are none, apart: whoever tries many must not push out those that are. */
  readonly #refused = new Map<string, { caller: null; until: number }>();
  readonly #used = new Set<Uuid>();
  #touchedAt = Number.NEGATIVE_INFINITY;
  #generation = 0;

  constructor(pool: Pool, clock: Clock, adminKey: string, rates: KeyRates) {
    this.#pool = pool;
    this.#clock = clock;
    this.#adminHash = hashKey(adminKey);
    this.#rates = rates;
  }

  /** Some key was revoked. */
  forget(): void {
    this.#remembered.clear();
    this.#refused.clear();
    this.#generation += 1;
  }

  /** Answers at once if the key is remembered: a promise per request would be the dearest part of it. */
  authenticate(authorization: string | undefined): Caller | Promise<Caller> {
    const found = this.#find(authorization);
    return found instanceof Promise ? found.then((caller) => this.#accept(caller)) : this.#accept(found);
  }

  /** For a request that goes on: it was counted when it began. */
  async isStillKnown(authorization: string | undefined): Promise<boolean> {
    const caller = await this.#find(authorization);
    if (caller?.keyId != null) this.#noteUse(caller.keyId);
    return caller !== null;
  }

  #find(authorization: string | undefined): Caller | null | Promise<Caller | null> {
    const key = keyIn(authorization);
    if (key === '') {
      throw new Problem('unauthorized', 'Send an API key as "Authorization: Bearer phk_…".');
    }
    const hashed = hashKey(key);
    if (timingSafeEqual(hashed, this.#adminHash)) return ADMIN;
    const name = hashed.toString('base64');
    const remembered = this.#remembered.get(name) ?? this.#refused.get(name);
    if (remembered !== undefined && remembered.until > this.#clock.monotonic()) return remembered.caller;
    return this.#lookUp(hashed);
  }

  #accept(caller: Caller | null): Caller {
    if (caller === null) throw new Problem('unauthorized', 'This API key is not known, or it was revoked.');
    if (caller.bucket !== null) this.#holdBack(caller.bucket);
    if (caller.keyId !== null) this.#noteUse(caller.keyId);
    return caller;
  }

  #holdBack(bucket: TokenBucket): void {
    const now = this.#clock.monotonic();
    if (bucket.tryTake(now)) return;
    throw new Problem('rate_limited', 'This key makes more requests than its limit allows.', {
      retryAfterSeconds: Math.ceil(bucket.msUntilNext(now) / 1000),
    });
  }

  async #lookUp(hashed: Buffer): Promise<Caller | null> {
    const generation = this.#generation;
    const key = await findKey(this.#pool, hashed);
    const caller =
      key === null
        ? null
        : {
            keyId: key.id,
            scope: key.scope,
            tenant: key.tenant,
            prefix: key.prefix,
            bucket: this.#rates.bucketOf(key),
          };
    // A key was revoked while this one was being read, perhaps this one: do not remember what may be old.
    if (generation !== this.#generation) return caller;
    const name = hashed.toString('base64');
    const until = this.#clock.monotonic() + REMEMBER_MS;
    if (caller === null) remember(this.#refused, name, { caller, until });
    else remember(this.#remembered, name, { caller, until });
    return caller;
  }

  /** "Last used" to the half minute: exact times would cost a write per request. */
  #noteUse(id: Uuid): void {
    this.#used.add(id);
    const now = this.#clock.monotonic();
    if (now - this.#touchedAt < TOUCH_EVERY_MS) return;
    this.#touchedAt = now;
    const used = [...this.#used];
    this.#used.clear();
    touchKeys(this.#pool, used).catch(() => {});
  }
}

const SCHEME = 'bearer ';

/** The name of the scheme is the same in any case. Empty: there is no key. */
export function keyIn(authorization = ''): string {
  if (authorization.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return '';
  return authorization.slice(SCHEME.length).trim();
}

function remember<T>(known: Map<string, T>, name: string, what: T): void {
  if (known.size >= REMEMBER_AT_MOST) known.clear();
  known.set(name, what);
}

/** Who did it, for the record. */
export function nameOf(caller: Caller): string {
  return caller.keyId === null ? 'admin' : publicId(idPrefixes.key, caller.keyId);
}

/** For lists: the tenant to show. A tenant's key shows its own only, and may name no other. */
export function tenantOf(caller: Caller, named: string | undefined, path = 'tenant'): string | null {
  if (caller.tenant !== null && named !== undefined && named !== caller.tenant) {
    throw new Problem('forbidden', 'This key belongs to another tenant.', {
      errors: [{ path, message: 'is not the tenant of this key' }],
    });
  }
  return caller.tenant ?? named ?? null;
}
