/**
 * Throw-away receivers: what arrives at `/inbox/{token}` is kept for a while to be looked at, and answered as told.
 * All in memory and bounded in every direction, since whoever knows a token can write here.
 */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../../domain/clock.ts';
import { Problem } from '../../domain/problem.ts';

export interface InboxAnswer {
  /** What requests get. */
  readonly status: number;
  readonly delay_ms: number;
  /** The connection is cut instead of answered. */
  readonly reset: boolean;
}

export type Verification = 'valid' | 'invalid' | 'unknown';

export interface ReceivedRequest {
  readonly number: number;
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly truncated: boolean;
  readonly signature: { readonly verdict: Verification; readonly detail: string };
  readonly answered: InboxAnswer;
}

export interface Inbox {
  readonly token: string;
  readonly tenant: string;
  readonly createdAt: number;
  expiresAt: number;
  answer: InboxAnswer;
  /** How many arrived in all, those included that are not kept any more. */
  received: number;
  /** Newest first. */
  readonly requests: ReceivedRequest[];
}

export interface InboxLimits {
  readonly inboxes: number;
  /** One tenant does not take them all. */
  readonly inboxesPerTenant: number;
  readonly requestsPerInbox: number;
  readonly bytesPerInbox: number;
  /** Without a request or a look at it. */
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
const TOKEN_BYTES = 16;

export class Inboxes {
  readonly #clock: Clock;
  readonly #limits: InboxLimits;
  readonly #inboxes = new Map<string, Inbox>();

  constructor(clock: Clock, limits: InboxLimits = INBOX_LIMITS) {
    this.#clock = clock;
    this.#limits = limits;
  }

  create(tenant: string, answer: InboxAnswer): Inbox {
    this.#clear();
    const { inboxes, inboxesPerTenant } = this.#limits;
    if (this.#inboxes.size >= inboxes)
      throw new Problem('conflict', `There are ${inboxes} inboxes already. Delete one first.`);
    if (this.list(tenant).length >= inboxesPerTenant)
      throw new Problem('conflict', `The tenant has ${inboxesPerTenant} inboxes already. Delete one first.`);
    const now = this.#clock.now();
    const inbox: Inbox = {
      token: randomBytes(TOKEN_BYTES).toString('base64url'),
      tenant,
      createdAt: now,
      expiresAt: now + this.#limits.expiresAfterMs,
      answer,
      received: 0,
      requests: [],
    };
    this.#inboxes.set(inbox.token, inbox);
    return inbox;
  }

  /** Newest first; null: of all tenants. */
  list(tenant: string | null): Inbox[] {
    this.#clear();
    return [...this.#inboxes.values()]
      .filter((inbox) => tenant === null || inbox.tenant === tenant)
      .toReversed();
  }

  /** A look at it keeps it. */
  find(token: string): Inbox | null {
    this.#clear();
    const inbox = this.#inboxes.get(token) ?? null;
    if (inbox !== null) inbox.expiresAt = this.#clock.now() + this.#limits.expiresAfterMs;
    return inbox;
  }

  delete(token: string): void {
    this.#inboxes.delete(token);
  }

  /** Keeps a request; the oldest go where there is no room. */
  keep(inbox: Inbox, request: Omit<ReceivedRequest, 'number' | 'at' | 'truncated'>): ReceivedRequest {
    inbox.received += 1;
    const { requestsPerInbox, bytesPerInbox } = this.#limits;
    const kept: ReceivedRequest = {
      ...request,
      number: inbox.received,
      at: this.#clock.now(),
      // A copy: a slice would hold the whole of what the socket read.
      body: Buffer.from(request.body.subarray(0, bytesPerInbox)),
      truncated: request.body.length > bytesPerInbox,
    };
    inbox.requests.unshift(kept);
    let bytes = 0;
    const fitting = inbox.requests.findIndex((each, index) => {
      bytes += sizeOf(each);
      return index > 0 && (bytes > bytesPerInbox || index >= requestsPerInbox);
    });
    if (fitting !== -1) inbox.requests.length = fitting;
    return kept;
  }

  #clear(): void {
    const now = this.#clock.now();
    for (const [token, inbox] of this.#inboxes) if (inbox.expiresAt <= now) this.#inboxes.delete(token);
  }
}

function sizeOf({ body, headers, path }: ReceivedRequest): number {
  let size = body.length + path.length;
  for (const [name, value] of Object.entries(headers)) size += name.length + value.length;
  return size;
}
