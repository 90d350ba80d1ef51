import { openTarget } from '../../archive/index.ts';
import type { Config } from '../../config/index.ts';
import { ArchiveError } from '../../domain/archive.ts';
import { type Finding, ok, problem } from './finding.ts';

/** Null: there is no archive. */
export async function checkArchive({
  archiveUrl,
  archivePathStyle,
}: Pick<Config, 'archiveUrl' | 'archivePathStyle'>): Promise<Finding | null> {
  if (archiveUrl === null) return null;
  const check = 'Archive';
  try {
    await openTarget(archiveUrl, { pathStyle: archivePathStyle }).check();
    return ok(check, archiveUrl);
  } catch (error) {
    if (!(error instanceof ArchiveError)) throw error;
    return problem(
      check,
      error.message,
      'Until the archive can be written, expired data stays in the database.',
    );
  }
}
