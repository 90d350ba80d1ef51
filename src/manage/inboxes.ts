/**
 * Temporary receivers: Posthorn stores requests to `/inbox/{token}` for a while and gives the configured answer. Their
 * number, size and age are limited, because anyone who knows a token can write to them.
 */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../domain/clock.ts';
import { INBOX_TOKEN, INBOX_TOKEN_BYTES } from '../domain/inbox-token.ts';
import { Problem } from '../domain/problem.ts';
import type { Pool } from '../postgres/database.ts';
import {
  clearInbox,
  createInbox,
  deleteInbox,
  findInbox,
  type Inbox,
  type InboxAnswer,
  keepRequest,
  listInboxes,
  listRequests,
  type ReceivedRequest,
  renewInbox,
  setInboxAnswer,
} from '../postgres/queries/inboxes.ts';

export type { Inbox, InboxAnswer, ReceivedRequest } from '../postgres/queries/inboxes.ts';

export interface InboxLimits {
  readonly inboxes: number;
  /** The limit for one tenant, so that it cannot use up all inboxes. */
  readonly inboxesPerTenant: number;
  readonly requestsPerInbox: number;
  readonly bytesPerInbox: number;
  /** Time after the last request or read. */
  readonly expiresAfterMs: number;
}

export const INBOX_LIMITS: InboxLimits = {
  inboxes: 100,
  inboxesPerTenant: 20,
  requestsPerInbox: 200,
  bytesPerInbox: 1024 * 1024,
  expiresAfterMs: 24 * 3_600_000,
};

export const DEFAULT_ANSWER: InboxAnswer = { status: 200, delay_ms: 0, reset: false };
/** The console reads an inbox every second, so not every read postpones the expiry. */
const RENEW_EVERY_MS = 60_000;

export class Inboxes {
  readonly #pool: Pool;
  readonly #clock: Clock;
  readonly #limits: InboxLimits;

  constructor(pool: Pool, clock: Clock, limits: InboxLimits = INBOX_LIMITS) {
    this.#pool = pool;
    this.#clock = clock;
    this.#limits = limits;
  }

  async create(tenant: string, answer: InboxAnswer): Promise<Inbox> {
    const { inboxes, inboxesPerTenant } = this.#limits;
    const inbox = await createInbox(
      this.#pool,
      {
        token: randomBytes(INBOX_TOKEN_BYTES).toString('base64url'),
        tenant,
        answer,
        createdAt: this.#clock.now(),
        expiresAt: this.#expiresAt(),
      },
      this.#limits,
    );
    if (inbox === 'inboxes')
      throw new Problem('conflict', `There are already ${inboxes} inboxes. Delete one first.`);
    if (inbox === 'inboxesPerTenant')
      throw new Problem('conflict', `The tenant already has ${inboxesPerTenant} inboxes. Delete one first.`);
    return inbox;
  }

  /** Newest first. Null: inboxes of all tenants. */
  list(tenant: string | null): Promise<Inbox[]> {
    return listInboxes(this.#pool, this.#clock.now(), tenant);
  }

  /** Returns the inbox and postpones its expiry, or null if there is none. */
  async find(token: string): Promise<Inbox | null> {
    if (!INBOX_TOKEN.test(token)) return null;
    const inbox = await findInbox(this.#pool, this.#clock.now(), token);
    if (inbox === null) return null;
    const expiresAt = this.#expiresAt();
    if (expiresAt - inbox.expiresAt < RENEW_EVERY_MS) return inbox;
    await renewInbox(this.#pool, token, expiresAt);
    return { ...inbox, expiresAt };
  }

  /** Changes how the inbox answers. Throws if it was deleted meanwhile. */
  async setAnswer(token: string, changes: Partial<InboxAnswer>): Promise<Inbox> {
    const inbox = await setInboxAnswer(this.#pool, token, changes);
    if (inbox === null) throw inboxNotFound();
    return inbox;
  }

  delete(token: string): Promise<void> {
    return deleteInbox(this.#pool, token);
  }

  /** Newest first. */
  listRequests(
    token: string,
    range: { readonly since: number | null; readonly until: number | null } = { since: null, until: null },
  ): Promise<ReceivedRequest[]> {
    return listRequests(this.#pool, token, { ...range, limit: this.#limits.requestsPerInbox });
  }

  clear(token: string): Promise<void> {
    return clearInbox(this.#pool, token);
  }

  /**
   * Stores a request and returns its number. Deletes the oldest ones beyond the limits. Throws if the inbox was
   * deleted.
   */
  async keep(
    { token }: Pick<Inbox, 'token'>,
    request: Omit<ReceivedRequest, 'number' | 'at' | 'truncated'>,
  ): Promise<number> {
    const { bytesPerInbox } = this.#limits;
    const number = await keepRequest(
      this.#pool,
      { token, expiresAt: this.#expiresAt() },
      {
        ...request,
        at: this.#clock.now(),
        body: request.body.subarray(0, bytesPerInbox),
        truncated: request.body.length > bytesPerInbox,
      },
      this.#limits,
    );
    if (number === null) throw inboxNotFound();
    return number;
  }

  #expiresAt(): number {
    return this.#clock.now() + this.#limits.expiresAfterMs;
  }
}

export const inboxNotFound = (): Problem =>
  new Problem('not_found', 'There is no such inbox. It may have expired: create a new one.');
