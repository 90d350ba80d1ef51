import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { onTestFinished } from 'vitest';

/** A directory for an archive, deleted after the test. */
export async function newArchive(): Promise<{ readonly folder: string; readonly url: string }> {
  const folder = await mkdtemp(path.join(tmpdir(), 'posthorn-archive-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return { folder, url: pathToFileURL(folder).href };
}
