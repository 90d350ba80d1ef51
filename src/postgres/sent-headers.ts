/**
 * The headers of a request as they are stored with its attempt: without those that can be computed from the attempt,
 * which are half of them.
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
  const known = type === JSON_TYPE ? others : { 'content-type': type, ...others };
  return JSON.stringify(
    isOfBatch(headers) ? { ...known, 'webhook-id': _event, 'posthorn-attempt': _attempt } : known,
  );
}

const isOfBatch = (headers: Readonly<Record<string, string>>): boolean =>
  headers['webhook-id']?.startsWith(BATCH) === true;

/** The public id of the batch that a request carried. Null: it carried a single event. */
export const batchOfRequest = (headers: Readonly<Record<string, string>>): string | null =>
  isOfBatch(headers) ? headers['webhook-id']! : null;

export function unpackHeaders(text: string, request: SentRequest): Record<string, string> {
  if (text === NOTHING_SENT) return {};
  const stored = JSON.parse(text) as Record<string, string>;
  const headers = { ...computeHeaders(request), ...stored };
  // A batch belongs to many deliveries and names none.
  if (isOfBatch(stored)) delete headers['posthorn-delivery'];
  return headers;
}
