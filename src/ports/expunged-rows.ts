/** What tombstones leave of an archived row. Rewriting a file and restoring from it use the same rules. */
import type { ArchiveKind } from '../domain/archive.ts';
import { eventIdOfDelivery, timeOfId, type Uuid } from '../domain/ids.ts';
import { tenantsNamedIn } from '../domain/operational-tenants.ts';
import {
  type ArchivedRow,
  type AttemptRow,
  type EventRow,
  expungeRow,
  type RowsByKind,
} from './archive-rows.ts';
import type { Tombstones } from './archive-store.ts';

const keyOf = (kind: ArchiveKind, row: ArchivedRow): Uuid =>
  kind === 'attempts' ? (row as AttemptRow).delivery_id : row.id;

/** Returns the same row if nothing of it was expunged. Null: the whole row was. */
export function withoutExpunged<K extends ArchiveKind>(
  kind: K,
  row: RowsByKind[K],
  { events, tenants }: Tombstones,
): RowsByKind[K] | null {
  const key = keyOf(kind, row);
  const expungedSince = (tenant: string): boolean => timeOfId(key) <= (tenants.get(tenant) ?? -1);
  if (row.tenant !== null && expungedSince(row.tenant)) return null;
  const expungedAt = events.get(eventIdOfDelivery(key)) ?? aboutExpungedTenant(kind, row, expungedSince);
  if (expungedAt === null || isExpunged(kind, row)) return row;
  return expungeRow(kind, row, expungedAt) as RowsByKind[K];
}

/** An operational event about a tenant belongs to the operator. Returns the time in it, or null. */
function aboutExpungedTenant(
  kind: ArchiveKind,
  row: ArchivedRow,
  expungedSince: (tenant: string) => boolean,
): number | null {
  if (kind !== 'events') return null;
  const { id, type, data } = row as EventRow;
  if (data === null || !type.startsWith('posthorn.')) return null;
  return tenantsNamedIn(data).some(expungedSince) ? timeOfId(id) : null;
}

/** Whether the payload of the row is gone already. */
function isExpunged(kind: ArchiveKind, row: ArchivedRow): boolean {
  if (kind === 'events')
    return (row as EventRow).data === null && /"expunged_at"/.test((row as EventRow).options ?? '');
  if (kind === 'deliveries') return true;
  const { request_headers, response_headers, response_body, error_message } = row as AttemptRow;
  return (
    request_headers === '{}' && response_headers === null && response_body === null && error_message === null
  );
}
