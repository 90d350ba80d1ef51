/**
 * The headers of a request as they are stored with its attempt: without those that can be computed from the attempt,
 * which are half of them. Of the others, the three that a usual request has get short names, unless a header of the
 * endpoint or the event has one of these names. Then `user-agent` keeps its name too, which tells the two forms apart.
 */
import { eventIdOfDelivery, idPrefixes, publicId, type Uuid } from '../domain/ids.ts';

export interface SentRequest {
  readonly deliveryId: Uuid;
  readonly number: number;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
}

const computeHeaders = ({ deliveryId, number, startedAt }: SentRequest): Record<string, string> => ({
  'content-type': JSON_TYPE,
  'webhook-id': publicId(idPrefixes.event, eventIdOfDelivery(deliveryId)),
  'webhook-timestamp': String(Math.floor(startedAt / 1000)),
  'posthorn-delivery': publicId(idPrefixes.delivery, deliveryId),
  'posthorn-attempt': String(number),
});

const NOTHING_SENT = '{}';
const BATCH = `${idPrefixes.batch}_`;
const JSON_TYPE = 'application/json';
const AGENT_PREFIX = 'Posthorn/';
const SIGNATURE_PREFIX = 'v1,';
/** One signature of the profile `standard`. */
const ONE_SIGNATURE = /^v1,[A-Za-z0-9+/=]+$/;
/** These are valid names of headers, because an earlier release shows them unchanged. */
const SHORT = { type: '!', version: '~', signature: '^' } as const;
const SHORT_NAMES = Object.values(SHORT);

/** Works only for headers that the deliverer has built. */
export function packHeaders(headers: Readonly<Record<string, string>>): string {
  const {
    'content-type': type,
    'webhook-id': _event,
    'webhook-timestamp': _timestamp,
    'posthorn-delivery': _delivery,
    'posthorn-attempt': _attempt,
    ...others
  } = headers;
  const known = shorten(type === JSON_TYPE ? others : { 'content-type': type, ...others });
  return JSON.stringify(
    isOfBatch(headers) ? { ...known, 'webhook-id': _event, 'posthorn-attempt': _attempt } : known,
  );
}

const isOfBatch = (headers: Readonly<Record<string, string>>): boolean =>
  headers['webhook-id']?.startsWith(BATCH) === true;

/** The public id of the batch that a request carried. Null: it carried a single event. */
export const batchOfRequest = (headers: Readonly<Record<string, string>>): string | null =>
  isOfBatch(headers) ? headers['webhook-id']! : null;

type Headers = Readonly<Record<string, string | undefined>>;

function shorten(headers: Headers): Headers {
  const {
    'posthorn-event-type': type,
    'user-agent': agent,
    'webhook-signature': signature,
    ...others
  } = headers;
  if (
    agent?.startsWith(AGENT_PREFIX) !== true ||
    signature === undefined ||
    !ONE_SIGNATURE.test(signature) ||
    SHORT_NAMES.some((name) => name in others)
  )
    return headers;
  return {
    ...others,
    [SHORT.type]: type,
    [SHORT.version]: agent.slice(AGENT_PREFIX.length),
    [SHORT.signature]: signature.slice(SIGNATURE_PREFIX.length),
  };
}

/** Parses stored headers and gives them their usual names. Does not add those that can be computed. */
export function parseHeaders(text: string): Record<string, string> {
  const stored = JSON.parse(text) as Record<string, string>;
  if ('user-agent' in stored) return stored;
  const { [SHORT.type]: type, [SHORT.version]: version, [SHORT.signature]: signature, ...headers } = stored;
  if (type !== undefined) headers['posthorn-event-type'] = type;
  if (version !== undefined) headers['user-agent'] = AGENT_PREFIX + version;
  if (signature !== undefined) headers['webhook-signature'] = SIGNATURE_PREFIX + signature;
  return headers;
}

export function unpackHeaders(text: string, request: SentRequest): Record<string, string> {
  if (text === NOTHING_SENT) return {};
  const stored = parseHeaders(text);
  const headers = { ...computeHeaders(request), ...stored };
  // A batch belongs to many deliveries and names none.
  if (isOfBatch(stored)) delete headers['posthorn-delivery'];
  return headers;
}
