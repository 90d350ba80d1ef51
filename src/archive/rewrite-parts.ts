/** Rewrites files that contain something that was expunged since they were written. */
import { type ArchiveKind, partNameOf } from '../domain/archive.ts';
import { eventIdOfDelivery, timeOfId } from '../domain/ids.ts';
import { type ArchivedRow, type EventRow, expungeRow, type RowsByKind } from '../ports/archive-rows.ts';
import type { ArchiveStore, StalePart, Tombstones } from '../ports/archive-store.ts';
import { formatOf } from './columns.ts';
import { writeManifest } from './export-partition.ts';
import { readRows } from './part-reader.ts';
import type { ArchiveTarget } from './targets/target.ts';
import { writePart } from './write-part.ts';

export interface RewriteOptions {
  readonly store: ArchiveStore;
  readonly target: ArchiveTarget;
  readonly onRewritten?: ((part: StalePart) => void) | undefined;
}

export async function rewriteStaleParts(options: RewriteOptions, isStopped: () => boolean): Promise<void> {
  for (const part of await options.store.listStaleParts()) {
    if (isStopped()) return;
    await rewritePart(part.kind, part, options);
  }
}

async function rewritePart<K extends ArchiveKind>(
  kind: K,
  part: StalePart,
  { store, target, onRewritten }: RewriteOptions,
): Promise<void> {
  const tombstones = await store.readTombstones(part);
  const name = partNameOf(part);
  const written = await target.withFile(name, async (file) => {
    // Most files contain none of it. They stay as they are.
    if (!(await contains(kind, file, tombstones))) return null;
    return writePart(target, {
      kind,
      day: part.day,
      part: part.part,
      fill: async (writer) => {
        for await (const rows of readRows(kind, file))
          for (const row of rows) {
            const left = withoutExpunged(kind, row, tombstones);
            if (left !== null) writer.add(left);
          }
      },
    });
  });
  // The range stays: an export that is not complete continues after it.
  const { minId, maxId } = part;
  await store.replacePart({ ...part, ...written, minId, maxId });
  if (written === null) return;
  await writeManifest({ store, target }, kind, part.day);
  onRewritten?.(part);
}

async function contains<K extends ArchiveKind>(
  kind: K,
  file: string,
  tombstones: Tombstones,
): Promise<boolean> {
  for await (const rows of readRows(kind, file))
    if (rows.some((row) => withoutExpunged(kind, row, tombstones) !== row)) return true;
  return false;
}

/** Returns the same row if nothing of it was expunged. Null: the whole row was. */
export function withoutExpunged<K extends ArchiveKind>(
  kind: K,
  row: RowsByKind[K],
  { events, tenants }: Tombstones,
): RowsByKind[K] | null {
  const { keyOf, tenantOf } = formatOf(kind);
  const key = keyOf(row);
  const expungedSince = (tenant: string): boolean => timeOfId(key) <= (tenants.get(tenant) ?? -1);
  const tenant = tenantOf(row);
  if (tenant !== null && expungedSince(tenant)) return null;
  const expungedAt = events.get(eventIdOfDelivery(key)) ?? aboutExpungedTenant(kind, row, expungedSince);
  if (expungedAt === null || isExpunged(kind, row)) return row;
  return expungeRow(kind, row as ArchivedRow, expungedAt) as RowsByKind[K];
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
  try {
    const { tenant, oldest } = JSON.parse(Buffer.from(data).toString()) as {
      readonly tenant?: unknown;
      readonly oldest?: { readonly tenant?: unknown } | null;
    };
    const names = [tenant, oldest?.tenant].filter((name) => typeof name === 'string');
    return names.some(expungedSince) ? timeOfId(id) : null;
  } catch {
    return null;
  }
}

/** Whether the payload of the row is gone already. */
function isExpunged(kind: ArchiveKind, row: ArchivedRow): boolean {
  if (kind === 'events')
    return (row as EventRow).data === null && /"expunged_at"/.test((row as EventRow).options ?? '');
  if (kind === 'deliveries') return true;
  const { request_headers, response_headers, response_body, error_message } = row as RowsByKind['attempts'];
  return (
    request_headers === '{}' && response_headers === null && response_body === null && error_message === null
  );
}
