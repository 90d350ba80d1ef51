import { fileURLToPath } from 'node:url';
import { ArchiveError } from '../../domain/archive.ts';
import { FileTarget } from './file-target.ts';
import type { ArchiveTarget } from './target.ts';

/** Opens the archive of `POSTHORN_ARCHIVE_URL`. Throws if the URL is not valid. */
export function openTarget(url: string): ArchiveTarget {
  const parsed = URL.parse(url);
  if (parsed?.protocol === 'file:') {
    if (parsed.host !== '')
      throw new ArchiveError(
        `POSTHORN_ARCHIVE_URL (${url}) names the host "${parsed.host}". Use three slashes: file:///…`,
      );
    return new FileTarget(url, fileURLToPath(parsed));
  }
  throw new ArchiveError(
    `POSTHORN_ARCHIVE_URL (${url}) is not valid. Allowed: file:///directory or s3://bucket/prefix.`,
  );
}
