import { timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../domain/clock.ts';
import type { Uuid } from '../../domain/ids.ts';
import { Problem } from '../../domain/problem.ts';
import { type ApiKeyFormat, hashApiKey } from '../../manage/api-keys.ts';
import type { Caller } from '../../manage/caller.ts';
import { refuseOperatorCaller } from '../../manage/operator-access.ts';
import type { RateBucket } from '../../ports/rate-limits.ts';
import type { Pool } from '../../postgres/database.ts';
import { findKey, touchKeys } from '../../postgres/queries/keys.ts';
import type { Sessions } from '../sign-in/sessions.ts';
import { clientAddress, type IsTrustedProxy } from './client-address.ts';
import type { KeyRates } from './key-rates.ts';
import { checkRestrictions, type KeyRestrictions, restrictionsOf, UNRESTRICTED } from './key-restrictions.ts';
import { checkScopes, type NeededScopes } from './route-scopes.ts';
import type { Sender } from './sender.ts';
import type { UncheckedKeys } from './unchecked-keys.ts';

/** Recognizes guessed keys without a query for each. */
export interface GuessFilter {
  readonly keyFormat: ApiKeyFormat;
  readonly uncheckedKeys: UncheckedKeys;
}

/** A valid key: who uses it, its restrictions, and its rate limit (null: none). */
interface KnownKey {
  readonly caller: Caller;
  readonly restrictions: KeyRestrictions;
  readonly bucket: RateBucket | null;
}

export interface AuthenticatorOptions {
  readonly rates: KeyRates;
  readonly guesses: GuessFilter;
  readonly isTrustedProxy: IsTrustedProxy;
  /** Keys for this tenant are refused. */
  readonly operatorTenant: string;
  /** Null: people cannot sign in to the console without a key. */
  readonly sessions: Sessions | null;
  /** How long a key that was valid stays valid while the database does not answer. Default 0. */
  readonly staleMs?: number;
}

interface CacheEntry<T> {
  readonly key: T;
  /** When the database had it, on the monotonic clock. */
  readonly readAt: number;
  readonly expiresAt: number;
}

const ADMIN: KnownKey = {
  caller: { keyId: null, scope: 'admin', scopes: null, tenant: null, prefix: null },
  restrictions: UNRESTRICTED,
  bucket: null,
};
const CACHE_MS = 10_000;
/** While the database does not answer, it is asked again this often. */
const STALE_CACHE_MS = 1_000;
const CACHE_ENTRIES = 10_000;
const TOUCH_EVERY_MS = 30_000;

/**
 * Finds the caller behind an API key. Keys are looked up by their hash and cached for 10 seconds, so that most requests
 * need no database read. A key without a valid checksum is a guess, unless an earlier version made it. Revoking a key
 * notifies every process (`posthorn_keys`), which clears its cache; the 10 seconds are the limit if that notification is
 * lost.
 */
export class Authenticator {
  readonly #pool: Pool;
  readonly #clock: Clock;
  readonly #adminHash: Buffer;
  readonly #rates: KeyRates;
  readonly #guesses: GuessFilter;
  readonly #isTrustedProxy: IsTrustedProxy;
  readonly #operatorTenant: string;
  readonly #sessions: Sessions | null;
  readonly #staleMs: number;
  readonly #validKeys = new Map<string, CacheEntry<KnownKey>>();
  /** A negative cache, kept separately so that guesses cannot evict valid keys. */
  readonly #invalidKeys = new Map<string, CacheEntry<null>>();
  readonly #usedSinceTouch = new Set<Uuid>();
  #touchedAt = Number.NEGATIVE_INFINITY;
  #generation = 0;

  constructor(
    pool: Pool,
    clock: Clock,
    adminKey: string,
    { rates, guesses, isTrustedProxy, operatorTenant, sessions, staleMs = 0 }: AuthenticatorOptions,
  ) {
    this.#pool = pool;
    this.#clock = clock;
    this.#adminHash = hashApiKey(adminKey);
    this.#rates = rates;
    this.#guesses = guesses;
    this.#isTrustedProxy = isTrustedProxy;
    this.#operatorTenant = operatorTenant;
    this.#sessions = sessions;
    this.#staleMs = staleMs;
  }

  /** Clears the cache. Call it when a key was revoked. */
  clear(): void {
    this.#sessions?.clear();
    this.#validKeys.clear();
    this.#invalidKeys.clear();
    this.#generation += 1;
  }

  /**
   * The caller of a request. Returns without a promise if the key is cached: on the hot path, the promise would cost
   * more than the rest. Throws `unauthorized`, `forbidden` or `rate_limited`.
   */
  authenticate(sender: Sender): Caller | Promise<Caller> {
    if (this.#sessions?.isUsedBy(sender)) return this.#admitPerson(this.#sessions, sender);
    const found = this.#find(sender.headers.authorization);
    return found instanceof Promise
      ? found.then((key) => this.#admit(key, sender))
      : this.#admit(found, sender);
  }

  /**
   * Whether the key or session of a long request may still make it: a key can be narrowed meanwhile. Does not count
   * against its rate limit. Throws if the database cannot be read.
   */
  async isStillAllowed(sender: Sender, needed: NeededScopes): Promise<boolean> {
    if (this.#sessions?.isUsedBy(sender)) return this.#sessions.isStillKnown(sender);
    const key = await this.#find(sender.headers.authorization);
    if (key === null) return false;
    try {
      this.#checkUse(key, sender);
      checkScopes(key.caller, needed);
    } catch (error) {
      if (error instanceof Problem) return false;
      throw error;
    }
    if (key.caller.keyId !== null) this.#noteUse(key.caller.keyId);
    return true;
  }

  #find(authorization: string | undefined): KnownKey | null | Promise<KnownKey | null> {
    const key = bearerToken(authorization);
    if (key === '') {
      throw new Problem('unauthorized', 'Send an API key as "Authorization: Bearer phk_…".');
    }
    const hashed = hashApiKey(key);
    if (timingSafeEqual(hashed, this.#adminHash)) return ADMIN;
    const name = hashed.toString('base64');
    const cached = this.#validKeys.get(name) ?? this.#invalidKeys.get(name);
    if (cached !== undefined && cached.expiresAt > this.#clock.monotonic()) return cached.key;
    const { keyFormat, uncheckedKeys } = this.#guesses;
    const mayExist = keyFormat.hasChecksum(key) || uncheckedKeys.has(hashed);
    if (mayExist === false) return null;
    if (mayExist === true) return this.#lookUpOrReuse(hashed, name);
    return mayExist.then((exists) => (exists ? this.#lookUpOrReuse(hashed, name) : null));
  }

  #admit(key: KnownKey | null, sender: Sender): Caller {
    if (key === null) throw new Problem('unauthorized', 'This API key is not known, or it was revoked.');
    this.#checkUse(key, sender);
    if (key.bucket !== null) this.#takeToken(key.bucket);
    if (key.caller.keyId !== null) this.#noteUse(key.caller.keyId);
    return key.caller;
  }

  async #admitPerson(sessions: Sessions, sender: Sender): Promise<Caller> {
    const person = await sessions.authenticate(sender);
    const bucket = this.#rates.bucketOfPerson(person);
    if (bucket !== null)
      this.#takeToken(bucket, 'You make more requests than the limit for a person allows.');
    return person;
  }

  /** Throws `unauthorized` or `forbidden` if the key may not be used now, from this address, or at all. */
  #checkUse({ caller, restrictions }: KnownKey, { headers, socket }: Sender): void {
    checkRestrictions(restrictions, this.#clock.now(), () =>
      clientAddress(socket.remoteAddress ?? '', headers['x-forwarded-for'], this.#isTrustedProxy),
    );
    refuseOperatorCaller(caller, this.#operatorTenant);
  }

  #takeToken(bucket: RateBucket, refusal = 'This key makes more requests than its limit allows.'): void {
    const now = this.#clock.monotonic();
    if (bucket.tryTake(now)) return;
    throw new Problem('rate_limited', refusal, {
      retryAfterSeconds: Math.ceil(bucket.msUntilNext(now) / 1000),
    });
  }

  /** While the database does not answer, a key stays valid for `staleMs` after it was read. */
  async #lookUpOrReuse(hashed: Buffer, name: string): Promise<KnownKey | null> {
    try {
      return await this.#lookUp(hashed, name);
    } catch (error) {
      const known = this.#validKeys.get(name);
      const now = this.#clock.monotonic();
      if (known === undefined || now - known.readAt > this.#staleMs) throw error;
      this.#validKeys.set(name, { ...known, expiresAt: now + STALE_CACHE_MS });
      return known.key;
    }
  }

  async #lookUp(hashed: Buffer, name: string): Promise<KnownKey | null> {
    const generation = this.#generation;
    const record = await findKey(this.#pool, hashed);
    const key = record && {
      caller: {
        keyId: record.id,
        scope: record.scope,
        scopes: record.scopes,
        tenant: record.tenant,
        prefix: record.prefix,
      },
      restrictions: restrictionsOf(record),
      bucket: this.#rates.bucketOf(record),
    };
    // Some key was revoked during the read, perhaps this one: do not cache what may be stale.
    if (generation !== this.#generation) return key;
    const readAt = this.#clock.monotonic();
    const expiresAt = readAt + CACHE_MS;
    if (key === null) cache(this.#invalidKeys, name, { key, readAt, expiresAt });
    else cache(this.#validKeys, name, { key, readAt, expiresAt });
    return key;
  }

  /** "Last used" is accurate to half a minute: exact times would cost a write per request. */
  #noteUse(id: Uuid): void {
    this.#usedSinceTouch.add(id);
    const now = this.#clock.monotonic();
    if (now - this.#touchedAt < TOUCH_EVERY_MS) return;
    this.#touchedAt = now;
    const used = [...this.#usedSinceTouch];
    this.#usedSinceTouch.clear();
    touchKeys(this.#pool, used).catch(() => {});
  }
}

const SCHEME = 'bearer ';

/** The key of an `Authorization` header; the scheme is case-insensitive. Empty: there is no key. */
export function bearerToken(authorization = ''): string {
  if (authorization.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return '';
  return authorization.slice(SCHEME.length).trim();
}

function cache<T>(entries: Map<string, T>, name: string, entry: T): void {
  if (entries.size >= CACHE_ENTRIES) entries.clear();
  entries.set(name, entry);
}
