/** Rows of the archived tables, without loss: times have microseconds, payloads are bytes. */
import type { ArchiveKind } from '../domain/archive.ts';
import { idPrefixes, type Uuid } from '../domain/ids.ts';

export interface EventRow {
  readonly id: Uuid;
  readonly tenant: string;
  readonly type: string;
  readonly data: Uint8Array | null;
  readonly deliveries: number;
  readonly idempotency_key: string | null;
  readonly options: string | null;
}

export interface DeliveryRow {
  readonly id: Uuid;
  readonly endpoint_id: Uuid;
  readonly status: string;
  readonly reason: string | null;
  readonly attempts: number;
  readonly replays: number;
  readonly last_status_code: number | null;
  readonly last_error_class: string | null;
  /** Microseconds since 1970, in digits. */
  readonly finished_at: string;
  readonly tenant: string;
  readonly event_type: string;
  readonly discard: string | null;
}

export interface AttemptRow {
  readonly delivery_id: Uuid;
  readonly id: Uuid;
  /** The tenant of the event. Null: the event no longer existed when the attempt was archived. */
  readonly tenant: string | null;
  readonly number: number;
  /** Microseconds since 1970, in digits. */
  readonly started_at: string;
  readonly duration_ms: number;
  readonly dns_ms: number | null;
  readonly connect_ms: number | null;
  readonly tls_ms: number | null;
  readonly first_byte_ms: number | null;
  readonly status_code: number | null;
  readonly outcome: string;
  readonly error_class: string | null;
  readonly error_message: string | null;
  readonly url: string;
  readonly request_headers: string;
  readonly response_headers: string | null;
  readonly response_body: Uint8Array | null;
  readonly response_truncated: boolean;
  readonly trigger: string;
  readonly worker: string;
}

export interface RowsByKind {
  readonly events: EventRow;
  readonly deliveries: DeliveryRow;
  readonly attempts: AttemptRow;
}
export type ArchivedRow = RowsByKind[keyof RowsByKind];

/** The row without its payload, as an expunge leaves it in the database. */
export function expungeRow(kind: ArchiveKind, row: ArchivedRow, expungedAt: number): ArchivedRow {
  if (kind === 'events') {
    const {
      headers: _,
      schema_errors: __,
      ...options
    } = JSON.parse((row as EventRow).options ?? '{}') as Record<string, unknown>;
    const marks = { expunged_at: Math.floor(expungedAt), expunged_by: 'tombstone' };
    return { ...(row as EventRow), data: null, options: JSON.stringify({ ...marks, ...options }) };
  }
  if (kind === 'attempts') return { ...expungeAnswer(row as AttemptRow), request_headers: '{}' };
  return row;
}

/** The attempt without what the receiver answered. */
export const expungeAnswer = (row: AttemptRow): AttemptRow => ({
  ...row,
  response_headers: null,
  response_body: null,
  response_truncated: false,
  error_message: null,
});

/** The public id of the batch that an attempt sent. Null: it sent a single event. */
export function batchOfAttempt({ request_headers }: AttemptRow): string | null {
  if (!request_headers.includes(`"${idPrefixes.batch}_`)) return null;
  const id = (JSON.parse(request_headers) as Record<string, string>)['webhook-id'];
  return id?.startsWith(`${idPrefixes.batch}_`) === true ? id : null;
}
