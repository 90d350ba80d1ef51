/** Finds the processes that a program under test has started. Reads /proc, so it works on Linux only. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';

export const hasProcessTree = existsSync('/proc/self/stat');

/** Ids of the running children of a process. */
export function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((each) => parentOf(each) === pid);
}

/** Returns null if the process has ended or is a zombie. */
function parentOf(pid: number): number | null {
  try {
    // The name in parentheses may contain anything.
    const [state, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    return state === 'Z' ? null : Number(parent);
  } catch {
    return null;
  }
}

export const isAlive = (pid: number): boolean => parentOf(pid) !== null;
