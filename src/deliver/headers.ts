/** The request headers of one attempt: the endpoint's constants, the event's extras, and what only we may set. */
import type { Endpoint } from '../domain/endpoint.ts';
import type { EndpointAuth } from '../domain/endpoint-auth.ts';
import type { EventContent } from '../domain/event.ts';

/** What frames the message, names the host or is Posthorn's own word to the receiver: nobody else may set it. */
const RESERVED = new Set([
  'host',
  'content-length',
  'content-type',
  'content-encoding',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'accept-encoding',
  'user-agent',
  'x-hub-signature-256',
  'stripe-signature',
  'x-webhook-signature',
  '__proto__',
]);
const RESERVED_PREFIXES = ['webhook-', 'posthorn-', 'proxy-', ':'];

export function isReservedHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return RESERVED.has(lower) || RESERVED_PREFIXES.some((prefix) => lower.startsWith(prefix));
}

const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
// Visible characters, blanks and tabs inside. Latin-1 and above is refused: it has no agreed meaning on the wire.
const VALUE = /^[\t\x20-\x7e]*$/;

/** Whether a header that a customer or producer asks for can be sent as it stands. */
export function isSendableHeader(name: string, value: string): boolean {
  return TOKEN.test(name) && VALUE.test(value) && !isReservedHeader(name);
}

/** Headers that prove who is asking: they stay with the origin they were configured for, and out of the log. */
const CREDENTIALS =
  /(?:^|[-_])(?:auth|authorization|authentication|cookie|token|secret|password|passwd|credentials?|session|jwt|apikey)(?:[-_]|$)|api[-_]?key|access[-_]?key/;

/** Asked for every header of every attempt, and nearly always for the same few names. */
const judged = new Map<string, boolean>();
const REMEMBER_NAMES = 1000;

/** By what its name says: whatever a customer calls it, a token is a token. `name` in lower case. */
export function isCredentialHeader(name: string): boolean {
  let is = judged.get(name);
  if (is === undefined) {
    is = CREDENTIALS.test(name);
    if (judged.size >= REMEMBER_NAMES) judged.clear();
    judged.set(name, is);
  }
  return is;
}

/** The headers as they may be written down. The same object where nothing is secret, which is the rule. */
export function withoutCredentials(headers: Record<string, string>): Record<string, string> {
  let shown: Record<string, string> | null = null;
  for (const name in headers) {
    if (!isCredentialHeader(name)) continue;
    shown ??= { ...headers };
    shown[name] = '[redacted]';
  }
  return shown ?? headers;
}

function copySendable(
  from: Readonly<Record<string, string>>,
  to: Record<string, string>,
): Record<string, string> {
  for (const [name, value] of Object.entries(from)) {
    if (isSendableHeader(name, value)) to[name.toLowerCase()] = value;
  }
  return to;
}

/** What is the same in every attempt to this endpoint; computed once per endpoint. */
export function staticHeaders(endpoint: Endpoint, userAgent: string): Record<string, string> {
  const headers = copySendable(endpoint.headers, {});
  headers['content-type'] = 'application/json';
  headers['user-agent'] = userAgent;
  const authorization = fixedAuthorization(endpoint.auth);
  if (authorization !== null) headers.authorization = authorization;
  if (endpoint.apiVersion !== null) headers['posthorn-api-version'] = endpoint.apiVersion;
  return headers;
}

/** An access token is not: it is fetched, and goes with its time. */
function fixedAuthorization(auth: EndpointAuth | null): string | null {
  if (auth?.type === 'basic') return basicAuthorization(auth.username, auth.password);
  return auth?.type === 'bearer' ? `Bearer ${auth.token}` : null;
}

export const basicAuthorization = (username: string, password: string): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

export interface AttemptFacts {
  readonly event: EventContent;
  readonly eventId: string;
  readonly deliveryId: string;
  readonly number: number;
  readonly retryReason: string | null;
  readonly timestampSeconds: number;
}

/** Everything but the signature. The endpoint's own headers outrank the event's. */
export function attemptHeaders(
  constants: Readonly<Record<string, string>>,
  facts: AttemptFacts,
): Record<string, string> {
  const extras = facts.event.headers;
  const headers: Record<string, string> =
    extras === null ? { ...constants } : { ...copySendable(extras, {}), ...constants };
  headers['webhook-id'] = facts.eventId;
  headers['webhook-timestamp'] = String(facts.timestampSeconds);
  headers['posthorn-event-type'] = facts.event.type;
  headers['posthorn-delivery'] = facts.deliveryId;
  headers['posthorn-attempt'] = String(facts.number);
  if (facts.retryReason !== null) headers['posthorn-retry-reason'] = facts.retryReason;
  return headers;
}

/** The extra headers of the `hex` and `github` profiles, by which their receivers tell events apart. */
export function addProfileHeaders(
  headers: Record<string, string>,
  profile: 'hex' | 'github',
  facts: AttemptFacts,
): void {
  if (profile === 'github') {
    headers['x-github-event'] = facts.event.type;
    headers['x-github-delivery'] = facts.deliveryId;
    return;
  }
  headers['x-webhook-id'] = facts.eventId;
  headers['x-webhook-delivery'] = facts.deliveryId;
  headers['x-webhook-timestamp'] = String(facts.timestampSeconds);
  headers['x-webhook-event'] = facts.event.type;
  headers['x-idempotency-key'] = facts.event.idempotencyKey ?? facts.eventId;
}
