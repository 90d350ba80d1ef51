/** Processor time and memory of processes, read from `/proc`. Linux only. */
import { readdir, readFile } from 'node:fs/promises';
import type { Postgres } from './harness.ts';

/** `/proc` counts processor time in hundredths of a second. */
const TICKS_PER_SECOND = 100;

/** Returns the processor time of a process, its running children and the children that it has outlived, in seconds. */
export async function readTreeSeconds(root: number): Promise<number> {
  const children = new Map<number, number[]>();
  const seconds = new Map<number, number>();
  for (const name of await readdir('/proc')) {
    const pid = Number(name);
    const fields = Number.isInteger(pid) ? await readStat(pid) : null;
    if (fields === null) continue;
    const parent = Number(fields[1]);
    children.set(parent, [...(children.get(parent) ?? []), pid]);
    // User and system time of the process, then of its ended children.
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    seconds.set(pid, ticks / TICKS_PER_SECOND);
  }
  const addUp = (pid: number): number =>
    (children.get(pid) ?? []).reduce((sum, child) => sum + addUp(child), seconds.get(pid) ?? 0);
  return addUp(root);
}

/** Returns the ids of the running children of a process. */
export async function readChildPids(parent: number): Promise<number[]> {
  const pids = (await readdir('/proc')).map(Number).filter(Number.isInteger);
  const parents = await Promise.all(pids.map(async (pid) => Number((await readStat(pid))?.[1])));
  return pids.filter((_, index) => parents[index] === parent);
}

/** Returns a variable of the environment that a process was started with. Null if it has none. */
export async function readEnvironment(pid: number, name: string): Promise<string | null> {
  const variables = (await readFile(`/proc/${pid}/environ`, 'utf8')).split('\0');
  return variables.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1) ?? null;
}

/** Returns the id of PostgreSQL's first process, the parent of all others. */
export async function readPostmasterPid(postgres: Postgres): Promise<number> {
  const [row] = await postgres.query<{ data_directory: string }>('show data_directory');
  return Number((await readFile(`${row!.data_directory}/postmaster.pid`, 'utf8')).split('\n')[0]);
}

export async function readRssMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) / 1024;
}

/** Returns the fields of `/proc/…/stat` after the name of the program: state, parent and so on. */
async function readStat(pid: number): Promise<string[] | null> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  return stat === null ? null : stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}
