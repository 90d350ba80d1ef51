/** The request headers of one attempt: those of the endpoint, those of the event, and Posthorn's own. */
import type { Endpoint } from '../domain/endpoint.ts';
import type { EndpointAuth } from '../domain/endpoint-auth.ts';
import type { EventContent } from '../domain/event.ts';

/** Headers that frame the message, name the host or belong to Posthorn. Endpoints and events cannot set them. */
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
// Printable ASCII, spaces and tabs. Other characters have no agreed encoding in headers.
const VALUE = /^[\t\x20-\x7e]*$/;

/** True if a header of an endpoint or event can be sent. */
export function isSendableHeader(name: string, value: string): boolean {
  return TOKEN.test(name) && VALUE.test(value) && !isReservedHeader(name);
}

/**
 * Percent-encodes what a header cannot carry. The API refuses such values, but earlier versions stored them, and rows of
 * an outbox or a relay may contain them.
 */
function headerText(value: string): string {
  if (VALUE.test(value)) return value;
  return value.replace(/[^\x20-\x7e]+/g, (run) =>
    Buffer.from(run)
      .toString('hex')
      .replace(/../g, (byte) => `%${byte.toUpperCase()}`),
  );
}

/** Names of headers with credentials, which are sent only to their origin and never logged. */
const CREDENTIALS =
  /(?:^|[-_])(?:auth|authorization|authentication|cookie|token|secret|password|passwd|credentials?|session|jwt|apikey)(?:[-_]|$)|api[-_]?key|access[-_]?key/;

/** A cache, because every header of every attempt is checked, nearly always with the same few names. */
const credentialNames = new Map<string, boolean>();
const MAX_CACHED_NAMES = 1000;

/** Decides by the name, which must be in lower case. */
export function isCredentialHeader(name: string): boolean {
  let isCredential = credentialNames.get(name);
  if (isCredential === undefined) {
    isCredential = CREDENTIALS.test(name);
    if (credentialNames.size >= MAX_CACHED_NAMES) credentialNames.clear();
    credentialNames.set(name, isCredential);
  }
  return isCredential;
}

/** Names of headers, in lower case. `hidden`: their values are never recorded. `plain`: their values are, even if the name suggests a secret. */
export interface HeaderRedaction {
  readonly hidden: ReadonlySet<string>;
  readonly plain: ReadonlySet<string>;
}

export const REDACT_CREDENTIALS: HeaderRedaction = { hidden: new Set(), plain: new Set() };

/** Values of an endpoint's headers are secret, unless `plainHeaders` names them. */
export function redactionOf(endpoint: Pick<Endpoint, 'headers' | 'plainHeaders' | 'auth'>): HeaderRedaction {
  const names = Object.keys(endpoint.headers).map((name) => name.toLowerCase());
  if (names.length === 0) return REDACT_CREDENTIALS;
  const plain = new Set(endpoint.plainHeaders.map((name) => name.toLowerCase()));
  // The value of this header comes from `auth`.
  if (endpoint.auth !== null) plain.delete('authorization');
  return {
    hidden: new Set(names.filter((name) => !plain.has(name))),
    plain: new Set(names.filter((name) => plain.has(name))),
  };
}

/** Returns the headers as they may be recorded: the same object if none is secret, which is the usual case. */
export function redactHeaders(
  headers: Record<string, string>,
  { hidden, plain }: HeaderRedaction,
): Record<string, string> {
  let shown: Record<string, string> | null = null;
  for (const name in headers) {
    const lower = name.toLowerCase();
    if (!hidden.has(lower) && (!isCredentialHeader(lower) || plain.has(lower))) continue;
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

/** Names as an endpoint or event gave them, by their lower case. Only names that are sent. */
export type GivenNames = Readonly<Record<string, string>>;

/** Posthorn compares names in lower case. Some receivers do not, so a request has the names as the endpoint or event gave them. */
export function withGivenNames(
  headers: Readonly<Record<string, string>>,
  names: GivenNames,
): Readonly<Record<string, string>> {
  let named: Record<string, string> | null = null;
  for (const lower in names) {
    const name = names[lower]!;
    if (name === lower || headers[lower] === undefined) continue;
    named ??= { ...headers };
    delete named[lower];
    named[name] = headers[lower];
  }
  return named ?? headers;
}

function namesOf(headers: Readonly<Record<string, string>>): Record<string, string> {
  const names: Record<string, string> = {};
  for (const name in headers) if (!isReservedHeader(name)) names[name.toLowerCase()] = name;
  return names;
}

/** A signature header may have one of these endings, for the signature of a coming or a former secret. */
export const SIGNATURE_SUFFIXES = ['', '-next', '-previous'] as const;

/** The names that the endpoint gave: of its headers, and of its signature. */
export function givenNames({ headers, signature }: Endpoint): GivenNames {
  const names = namesOf(headers);
  const header = typeof signature === 'string' ? null : signature.header;
  if (header !== null) {
    for (const suffix of SIGNATURE_SUFFIXES) names[`${header.toLowerCase()}${suffix}`] = `${header}${suffix}`;
  }
  return names;
}

/** Adds the names of an event's headers. Headers of the endpoint take precedence. */
export const withEventNames = (names: GivenNames, { headers }: EventContent): GivenNames =>
  headers === null ? names : { ...namesOf(headers), ...names };

/** Headers that are the same in every attempt to this endpoint. Computed once per endpoint. */
export function staticHeaders(endpoint: Endpoint, userAgent: string): Record<string, string> {
  const headers = copySendable(endpoint.headers, {});
  headers['content-type'] = 'application/json';
  headers['user-agent'] = userAgent;
  const authorization = fixedAuthorization(endpoint.auth);
  if (authorization !== null) headers.authorization = authorization;
  if (endpoint.apiVersion !== null) headers['posthorn-api-version'] = headerText(endpoint.apiVersion);
  return headers;
}

/** Null for OAuth 2, whose access tokens are fetched and expire. */
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
  readonly versionHeaders: Readonly<Record<string, string>> | null;
  readonly timestampSeconds: number;
}

/** All headers but the signature. Headers of the endpoint take precedence over those of the event. */
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
  if (facts.event.isTest === true) headers['posthorn-test'] = 'true';
  if (facts.retryReason !== null) headers['posthorn-retry-reason'] = facts.retryReason;
  if (facts.versionHeaders !== null) Object.assign(headers, facts.versionHeaders);
  return headers;
}

/** The type that receivers of the `hex` and `github` profiles get for a batch. */
const BATCH_TYPE = 'posthorn.batch';

/**
 * All headers of a batch but the signature. Headers that identify a single event are left out: every envelope has the id
 * and the type of its event. Headers that producers gave their events are not sent.
 */
export function batchHeaders(
  constants: Readonly<Record<string, string>>,
  facts: AttemptFacts,
  size: number,
): Record<string, string> {
  const headers: Record<string, string> = { ...constants };
  headers['webhook-id'] = facts.eventId;
  headers['webhook-timestamp'] = String(facts.timestampSeconds);
  headers['posthorn-batch'] = String(size);
  headers['posthorn-attempt'] = String(facts.number);
  if (facts.event.isTest === true) headers['posthorn-test'] = 'true';
  if (facts.retryReason !== null) headers['posthorn-retry-reason'] = facts.retryReason;
  if (facts.versionHeaders !== null) Object.assign(headers, facts.versionHeaders);
  return headers;
}

/** A batch as if it were one event, for profiles whose headers identify events. */
export const factsOfBatch = (facts: AttemptFacts): AttemptFacts => ({
  ...facts,
  deliveryId: facts.eventId,
  event: { ...facts.event, type: BATCH_TYPE, idempotencyKey: null },
});

/** Adds the headers by which receivers of the `hex` and `github` profiles identify events. */
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
  headers['x-idempotency-key'] = headerText(facts.event.idempotencyKey ?? facts.eventId);
}
