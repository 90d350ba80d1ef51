import { statfs } from 'node:fs/promises';
import { type Finding, ok, problem, warning } from './finding.ts';

const GIB = 2 ** 30;

/** Of the embedded database: a full disk stops accepting. */
export async function checkDisk(directory: string): Promise<Finding> {
  const { bavail, bsize } = await statfs(directory);
  return judgeDisk(bavail * bsize, directory);
}

export function judgeDisk(freeBytes: number, directory: string): Finding {
  const check = 'Disk';
  const detail = `${(freeBytes / GIB).toFixed(1)} GiB free for ${directory}`;
  const todo = 'Make room, or move the data directory. Events are refused when the disk is full.';
  if (freeBytes < GIB / 4) return problem(check, `${detail}.`, todo);
  if (freeBytes < 2 * GIB) return warning(check, `${detail}.`, todo);
  return ok(check, detail);
}
