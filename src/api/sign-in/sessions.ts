/**
 * Sessions of people who have signed in to the console. The cookie has a random token, the database its hash. The token
 * has a checksum, as API keys have, so that a guess costs no query.
 *
 * A request with the cookie also needs the header `x-posthorn-csrf`, because browsers send cookies by themselves. Only
 * pages of this server can read its value: there are no CORS headers, and the value follows from the token, which scripts
 * cannot read.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../domain/clock.ts';
import { Problem } from '../../domain/problem.ts';
import { hashApiKey } from '../../manage/api-keys.ts';
import type { Caller } from '../../manage/caller.ts';
import {
  type AuditFor,
  type ConsoleSessionOptions,
  callerOf,
  endSession,
  type Person,
  startSession,
} from '../../manage/console-sessions.ts';
import { findSession, type SessionRecord } from '../../postgres/queries/console-sessions.ts';
import type { Sender } from '../http/sender.ts';
import { cookieName, readCookie, writeCookie } from './cookies.ts';

export const SESSION_COOKIE = 'posthorn_session';
export const SESSION_PREFIX = 'phs_';
export const CSRF_HEADER = 'x-posthorn-csrf';

const CACHE_MS = 10_000;
const CACHE_ENTRIES = 10_000;

export interface SessionOptions extends ConsoleSessionOptions {
  /** Cookies are sent over TLS only. */
  readonly isSecure: () => boolean;
}

interface CacheEntry<T> {
  readonly session: T;
  readonly readAgainAt: number;
}

export class Sessions {
  readonly #options: SessionOptions;
  readonly #valid = new Map<string, CacheEntry<SessionRecord>>();
  /** A negative cache, kept separately so that ended sessions cannot evict valid ones. */
  readonly #ended = new Map<string, CacheEntry<null>>();
  #generation = 0;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** Clears the cache. Call it when a session may have ended in another process. */
  clear(): void {
    this.#valid.clear();
    this.#ended.clear();
    this.#generation += 1;
  }

  /** Whether the request is identified by a session. A key takes precedence. */
  isUsedBy({ headers }: Sender): boolean {
    return headers.authorization === undefined && this.#tokenOf(headers.cookie) !== null;
  }

  /** The caller of a request. Throws `unauthorized` or `forbidden`. */
  async authenticate(sender: Sender): Promise<Caller> {
    const { headers } = sender;
    const token = this.#tokenOf(headers.cookie) ?? '';
    const session = await this.#find(token);
    if (session === null) throw new Problem('unauthorized', 'Your session has ended. Sign in again.');
    if (!isSame(String(headers[CSRF_HEADER] ?? ''), csrfTokenOf(token)) || comesFromElsewhere(headers))
      throw new Problem(
        'forbidden',
        `A request with a session needs the header "${CSRF_HEADER}" with the value from GET /auth/session.`,
      );
    return callerOf(session);
  }

  async isStillKnown({ headers }: Sender): Promise<boolean> {
    return (await this.#find(this.#tokenOf(headers.cookie) ?? '')) !== null;
  }

  /** The session of a browser, with the value for the CSRF header. Null: nobody is signed in. */
  async findCurrent(cookie: string | undefined): Promise<{ name: string; csrfToken: string } | null> {
    const token = this.#tokenOf(cookie);
    const session = token === null ? null : await this.#find(token);
    return session === null ? null : { name: session.name, csrfToken: csrfTokenOf(token!) };
  }

  /** Starts a session and returns its cookie. */
  async start(person: Person, auditFor: AuditFor): Promise<string> {
    const token = await startSession(this.#options, person, auditFor);
    return this.#cookie(token, Math.floor(this.#options.lifetimeMs / 1000));
  }

  /**
   * Ends the session of a request everywhere, and returns the cookie that removes it from the browser. Throws
   * `unauthorized` or `forbidden`.
   */
  async end(sender: Sender, auditFor: AuditFor): Promise<string> {
    const caller = await this.authenticate(sender);
    const token = this.#tokenOf(sender.headers.cookie) ?? '';
    await endSession(this.#options.pool, token, { caller, audit: auditFor(caller) });
    this.clear();
    return this.#cookie('', 0);
  }

  #cookie(token: string, maxAgeSeconds: number): string {
    const isSecure = this.#options.isSecure();
    return writeCookie(SESSION_COOKIE, token, { maxAgeSeconds, sameSite: 'Strict', isSecure });
  }

  #tokenOf(cookie: string | undefined): string | null {
    return readCookie(cookie, cookieName(SESSION_COOKIE, this.#options.isSecure())) || null;
  }

  async #find(token: string): Promise<SessionRecord | null> {
    const { pool, clock, tokenFormat } = this.#options;
    if (!tokenFormat.hasChecksum(token)) return null;
    const hash = hashApiKey(token);
    const name = hash.toString('base64');
    const cached = this.#valid.get(name) ?? this.#ended.get(name);
    if (cached !== undefined && cached.readAgainAt > clock.monotonic())
      return nullIfExpired(cached.session, clock);
    const generation = this.#generation;
    const session = await findSession(pool, hash);
    // Some session ended during the read, perhaps this one: do not cache what may be stale.
    if (generation !== this.#generation) return session;
    this.#valid.delete(name);
    const readAgainAt = clock.monotonic() + CACHE_MS;
    if (session === null) cache(this.#ended, name, { session, readAgainAt });
    else cache(this.#valid, name, { session, readAgainAt });
    return session;
  }
}

function cache<T>(entries: Map<string, T>, name: string, entry: T): void {
  if (entries.size >= CACHE_ENTRIES) entries.clear();
  entries.set(name, entry);
}

/** The token of a session's cookie, over TLS or not. Null without a session cookie. */
export const sessionTokenIn = (cookie: string | undefined): string | null =>
  [true, false].map((isSecure) => readCookie(cookie, cookieName(SESSION_COOKIE, isSecure))).find(Boolean) ??
  null;

const nullIfExpired = (session: SessionRecord | null, clock: Clock): SessionRecord | null =>
  session !== null && session.expires_at.getTime() > clock.now() ? session : null;

const csrfTokenOf = (token: string): string =>
  createHmac('sha256', token).update('posthorn csrf').digest('base64url');

function isSame(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}

/** Whether another site made the browser send the request. Browsers say so in `Sec-Fetch-Site`. */
const comesFromElsewhere = (headers: Sender['headers']): boolean =>
  !['same-origin', undefined].includes(headers['sec-fetch-site'] as string | undefined);
