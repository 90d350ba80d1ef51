/** Tombstones: what was expunged, as it is copied out of the database. Contains ids and times only. Pure. */
export interface StoredTombstone {
  /** `batch`: the answers to a batch with an expunged event. */
  readonly kind: 'event' | 'tenant' | 'batch';
  readonly id: string;
  /** ISO 8601 with microseconds. */
  readonly at: string;
  /** Set for a tenant. */
  readonly endpoint_ids: readonly string[];
  /** Set for a batch: the range of ids of its deliveries. */
  readonly first_id: string | null;
  readonly last_id: string | null;
}

const KINDS: readonly unknown[] = ['event', 'tenant', 'batch'] satisfies StoredTombstone['kind'][];
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const isUuid = (value: unknown): boolean => typeof value === 'string' && UUID.test(value);
const isUuidOrNull = (value: unknown): boolean => value === null || isUuid(value);

/** One JSON object per line. */
export const formatTombstones = (tombstones: readonly StoredTombstone[]): string =>
  tombstones.map((tombstone) => `${JSON.stringify(tombstone)}\n`).join('');

/** Throws a `SyntaxError` that names the first line that is not a tombstone. */
export function parseTombstones(text: string): StoredTombstone[] {
  return text.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return [];
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      value = null;
    }
    if (!isTombstone(value))
      throw new SyntaxError(`Line ${index + 1} is not a tombstone: ${line.slice(0, 200)}`);
    return [value];
  });
}

function isTombstone(value: unknown): value is StoredTombstone {
  if (typeof value !== 'object' || value === null) return false;
  const { kind, id, at, endpoint_ids, first_id, last_id } = value as Record<string, unknown>;
  return (
    KINDS.includes(kind) &&
    typeof id === 'string' &&
    (kind === 'tenant' || isUuid(id)) &&
    typeof at === 'string' &&
    !Number.isNaN(Date.parse(at)) &&
    Array.isArray(endpoint_ids) &&
    endpoint_ids.every(isUuid) &&
    (kind === 'batch' ? isUuid(first_id) && isUuid(last_id) : isUuidOrNull(first_id) && isUuidOrNull(last_id))
  );
}
