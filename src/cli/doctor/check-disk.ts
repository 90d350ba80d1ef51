import { statfs } from 'node:fs/promises';
import { type Finding, ok, problem, warning } from './finding.ts';

const GIB = 2 ** 30;

/** Checks the disk of the embedded database. If it is full, no events are accepted. */
export async function checkDisk(directory: string): Promise<Finding> {
  const { bavail, bsize } = await statfs(directory);
  return judgeDisk(bavail * bsize, directory);
}

export function judgeDisk(freeBytes: number, directory: string): Finding {
  const check = 'Disk';
  const detail = `${(freeBytes / GIB).toFixed(1)} GiB free for ${directory}`;
  const todo = 'Free some space, or move the data directory. If the disk is full, events are refused.';
  if (freeBytes < GIB / 4) return problem(check, `${detail}.`, todo);
  if (freeBytes < 2 * GIB) return warning(check, `${detail}.`, todo);
  return ok(check, detail);
}
