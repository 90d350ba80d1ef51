import type { FieldError } from '../domain/problem.ts';

const MAX_METADATA_BYTES = 16 * 1024;
/** More entries never fit, because the shortest one takes five bytes. */
export const MAX_METADATA_ENTRIES = 4_000;

/** Metadata is part of every list and of the cache of every process, so its size is limited. Null: it fits. */
export function checkMetadataSize(metadata: object): FieldError | null {
  if (Buffer.byteLength(JSON.stringify(metadata)) <= MAX_METADATA_BYTES) return null;
  return { path: 'metadata', message: `must be at most ${MAX_METADATA_BYTES} bytes of JSON` };
}
