/** Processes that are not ours: those that a program under test has started. From /proc, so on Linux only. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';

export const hasProcessTree = existsSync('/proc/self/stat');

/** Ids of the living children of a process. */
export function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((each) => parentOf(each) === pid);
}

/** Null: it has ended (or is a zombie that nobody has waited for yet). */
function parentOf(pid: number): number | null {
  try {
    // The name in parentheses may hold anything.
    const [state, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    return state === 'Z' ? null : Number(parent);
  } catch {
    return null;
  }
}

export const isAlive = (pid: number): boolean => parentOf(pid) !== null;
