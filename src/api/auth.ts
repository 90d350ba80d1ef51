import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import type { Pool } from '../store/database.ts';
import { findKey, type KeyScope, touchKeys } from '../store/queries/keys.ts';

/** Whoever made a request, and what they may do. */
export interface Caller {
  readonly keyId: Uuid | null;
  readonly scope: KeyScope;
  /** The one tenant that the key is for; null: all of them. */
  readonly tenant: string | null;
}

export function hashKey(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

/** 256 random bits behind a prefix that secret scanners can look for. */
export function newApiKey(): string {
  return `phk_${randomBytes(32).toString('base64url')}`;
}

export const shownPrefix = (key: string): string => key.slice(0, 10);

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
  readonly #remembered = new Map<string, { caller: Caller | null; until: number }>();
  readonly #used = new Set<Uuid>();
  #touchedAt = Number.NEGATIVE_INFINITY;

  constructor(pool: Pool, clock: Clock, adminKey: string) {
    this.#pool = pool;
    this.#clock = clock;
    this.#adminHash = hashKey(adminKey);
  }

  /** Some key was revoked. */
  forget(): void {
    this.#remembered.clear();
  }

  async authenticate(authorization: string | undefined): Promise<Caller> {
    const key = authorization?.startsWith('Bearer ') ? authorization.slice(7).trim() : '';
    if (key === '') {
      throw new Problem('unauthorized', 'Send an API key as "Authorization: Bearer phk_…".');
    }
    const hash = hashKey(key);
    if (timingSafeEqual(hash, this.#adminHash)) return { keyId: null, scope: 'admin', tenant: null };
    const caller = await this.#lookUp(hash);
    if (caller === null) throw new Problem('unauthorized', 'This API key is not known, or it was revoked.');
    if (caller.keyId !== null) this.#noteUse(caller.keyId);
    return caller;
  }

  async #lookUp(hash: Buffer): Promise<Caller | null> {
    const name = hash.toString('base64');
    const now = this.#clock.monotonic();
    const remembered = this.#remembered.get(name);
    if (remembered !== undefined && remembered.until > now) return remembered.caller;
    const key = await findKey(this.#pool, hash);
    const caller = key === null ? null : { keyId: key.id, scope: key.scope, tenant: key.tenant };
    if (this.#remembered.size >= REMEMBER_AT_MOST) this.#remembered.clear();
    this.#remembered.set(name, { caller, until: now + REMEMBER_MS });
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

/** For lists: the tenant to show. A tenant's key shows its own only, and may name no other. */
export function tenantOf(caller: Caller, named: string | undefined): string | null {
  if (caller.tenant !== null && named !== undefined && named !== caller.tenant) {
    throw new Problem('forbidden', 'This key belongs to another tenant.');
  }
  return caller.tenant ?? named ?? null;
}
