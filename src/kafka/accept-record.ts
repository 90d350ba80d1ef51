/**
 * Records of the accept topic. The value is `data`, byte for byte; the header `posthorn` has the rest of the event. Only Posthorn
 * writes these records, after it has checked the event. The fields that SQL relies on are checked again, because other
 * programs may write to the topic.
 */
import { isEventType, isTenantId } from '../domain/event.ts';
import { isEventId } from '../domain/ids.ts';
import type { LoggedEvent } from '../ports/event-log.ts';
import { UnmappedRecordError } from './mapping.ts';
import { headerOf, type KafkaRecord } from './record.ts';

export interface NewLogRecord {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly headers: ReadonlyMap<Buffer, Buffer>;
}

const VERSION = 1;
const HEADER = 'posthorn';
const HEADER_BYTES = Buffer.from(HEADER);
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

interface Envelope extends Omit<LoggedEvent, 'data' | 'schemaErrors'> {
  readonly v: number;
  readonly deployment: string;
}

export function encodeEvent(
  { data, schemaErrors: _, ...event }: LoggedEvent,
  deployment: string,
): NewLogRecord {
  const envelope: Envelope = { v: VERSION, deployment, ...event };
  return {
    key: Buffer.from(event.tenant),
    value: data,
    headers: new Map([[HEADER_BYTES, Buffer.from(JSON.stringify(envelope))]]),
  };
}

/** Throws `UnmappedRecordError` if the record is not one of this deployment. */
export function decodeEvent(record: KafkaRecord, deployment: string): LoggedEvent {
  const { v: _, deployment: __, ...event } = readEnvelope(record, deployment);
  return { ...event, data: record.value! };
}

export type EventIdentity = Pick<LoggedEvent, 'id' | 'tenant' | 'closedTenantsReadAt'>;

/** Returns the id and tenant, even of a record that cannot be stored. Null: the record has no valid id or tenant. */
export function identifyEvent(record: KafkaRecord): EventIdentity | null {
  try {
    const { id, tenant, closedTenantsReadAt } = parseEnvelope(record);
    const readAt = Number.isFinite(closedTenantsReadAt) ? closedTenantsReadAt : null;
    return isEventId(id) && isTenantId(tenant) ? { id, tenant, closedTenantsReadAt: readAt } : null;
  } catch {
    return null;
  }
}

/** True if a process of this deployment wrote the record, so that a client may have got 202 for it. */
export function isOfDeployment(record: KafkaRecord, deployment: string): boolean {
  try {
    return parseEnvelope(record).deployment === deployment;
  } catch {
    return false;
  }
}

function readEnvelope(record: KafkaRecord, deployment: string): Envelope {
  const envelope = parseEnvelope(record);
  if (envelope.v !== VERSION)
    throw new UnmappedRecordError(
      `the record has version ${envelope.v}, and this release of Posthorn reads version ${VERSION}: upgrade all processes, then retry it`,
    );
  if (envelope.deployment !== deployment)
    throw new UnmappedRecordError(
      'the record was written by a deployment with another database: give each deployment its own POSTHORN_KAFKA_ACCEPT_TOPIC',
    );
  if (record.value === null || !isValid(envelope))
    throw new UnmappedRecordError('the record was not written by Posthorn');
  return envelope;
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isTextOrNull = (value: unknown): boolean => value === null || isText(value);

function isValid({
  id,
  tenant,
  type,
  channels,
  endpointIds,
  deliverAt,
  headers,
  closedTenantsReadAt,
  ...rest
}: Envelope): boolean {
  return (
    isText(id) &&
    UUID.test(id) &&
    isEventId(id) &&
    isText(tenant) &&
    isTenantId(tenant) &&
    isText(type) &&
    isEventType(type) &&
    isTextOrNull(rest.idempotencyKey) &&
    isTextOrNull(rest.schemaVersion) &&
    Array.isArray(channels) &&
    channels.every(isText) &&
    (endpointIds === null ||
      (Array.isArray(endpointIds) && endpointIds.every((each) => isText(each) && UUID.test(each)))) &&
    (deliverAt === null || Number.isFinite(deliverAt)) &&
    Number.isFinite(closedTenantsReadAt ?? 0) &&
    (headers === null || (typeof headers === 'object' && Object.values(headers).every(isText)))
  );
}

function parseEnvelope(record: KafkaRecord): Envelope {
  try {
    const envelope = JSON.parse(headerOf(record, HEADER) ?? 'null') as Envelope | null;
    if (envelope !== null && typeof envelope === 'object') return envelope;
  } catch {
    // Reported below.
  }
  throw new UnmappedRecordError('the record was not written by Posthorn');
}
