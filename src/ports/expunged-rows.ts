/** Removes expunged data from an archived row. Rewriting a file and restoring from it use the same rules. */
import type { ArchiveKind } from '../domain/archive.ts';
import { eventIdOfDelivery, timeOfId, type Uuid } from '../domain/ids.ts';
import { tenantsNamedIn } from '../domain/operational-tenants.ts';
import {
  type ArchivedRow,
  type AttemptRow,
  batchOfAttempt,
  type EventRow,
  expungeAnswer,
  expungeRow,
  type RowsByKind,
} from './archive-rows.ts';
import type { Tombstones } from './archive-store.ts';

const keyOf = (kind: ArchiveKind, row: ArchivedRow): Uuid =>
  kind === 'attempts' ? (row as AttemptRow).delivery_id : row.id;

/** Returns the row without its expunged data: the same row if none was expunged, null if the whole row was. */
export function withoutExpunged<K extends ArchiveKind>(
  kind: K,
  row: RowsByKind[K],
  { events, tenants, batches }: Tombstones,
): RowsByKind[K] | null {
  const key = keyOf(kind, row);
  const isTenantExpunged = (tenant: string): boolean => timeOfId(key) <= (tenants.get(tenant) ?? -1);
  if (row.tenant !== null && isTenantExpunged(row.tenant)) return null;
  const expungedAt =
    events.get(eventIdOfDelivery(key)) ?? findTimeOfExpungedTenant(kind, row, isTenantExpunged);
  if (expungedAt !== null)
    return isExpunged(kind, row) ? row : (expungeRow(kind, row, expungedAt) as RowsByKind[K]);
  if (kind !== 'attempts' || batches.size === 0 || !hasAnswer(row as AttemptRow)) return row;
  const batch = batchOfAttempt(row as AttemptRow);
  return batch !== null && batches.has(batch) ? (expungeAnswer(row as AttemptRow) as RowsByKind[K]) : row;
}

/** The batch that an attempt of an expunged event sent. The answers of its other events may repeat the payload. */
export function findExpungedBatch(row: AttemptRow, { events, batches }: Tombstones): string | null {
  if (!events.has(eventIdOfDelivery(row.delivery_id))) return null;
  const batch = batchOfAttempt(row);
  return batch === null || batches.has(batch) ? null : batch;
}

const hasAnswer = ({ response_headers, response_body, error_message }: AttemptRow): boolean =>
  response_headers !== null || response_body !== null || error_message !== null;

/** Returns the time of an operational event that names an expunged tenant. Such an event belongs to the operator. Null: it is another row. */
function findTimeOfExpungedTenant(
  kind: ArchiveKind,
  row: ArchivedRow,
  isTenantExpunged: (tenant: string) => boolean,
): number | null {
  if (kind !== 'events') return null;
  const { id, type, data } = row as EventRow;
  if (data === null || !type.startsWith('posthorn.')) return null;
  return tenantsNamedIn(data).some(isTenantExpunged) ? timeOfId(id) : null;
}

/** Whether the payload of the row is gone already. */
function isExpunged(kind: ArchiveKind, row: ArchivedRow): boolean {
  if (kind === 'events')
    return (row as EventRow).data === null && /"expunged_at"/.test((row as EventRow).options ?? '');
  if (kind === 'deliveries') return true;
  return (row as AttemptRow).request_headers === '{}' && !hasAnswer(row as AttemptRow);
}
