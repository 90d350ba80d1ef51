/** CPU time and memory of processes, from /proc (Linux only). */
import { readdir, readFile } from 'node:fs/promises';
import type { Postgres } from './harness.ts';

/** Clock ticks per second of /proc/…/stat. 100 on every usual Linux. */
const TICKS = 100;

/** The fields of `/proc/…/stat` after the name of the program: state, parent and so on. */
async function readStat(pid: number | string): Promise<string[] | null> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  return stat === null ? null : stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** User and system time of a process, in seconds. 0 if it has ended. */
export async function cpuSeconds(pid: number | string): Promise<number> {
  const fields = await readStat(pid);
  return fields === null ? 0 : (Number(fields[11]) + Number(fields[12])) / TICKS;
}

/** User and system time of children that ended, in seconds. */
async function cpuSecondsOfEndedChildren(pid: number): Promise<number> {
  const fields = await readStat(pid);
  return fields === null ? 0 : (Number(fields[13]) + Number(fields[14])) / TICKS;
}

export async function childrenOf(parent: number): Promise<number[]> {
  const children: number[] = [];
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const fields = await readStat(pid);
    if (fields !== null && Number(fields[1]) === parent) children.push(Number(pid));
  }
  return children;
}

/** The time of all children that a process has now. */
export async function cpuSecondsOfChildren(parent: number): Promise<number> {
  const times = await Promise.all((await childrenOf(parent)).map(cpuSeconds));
  return times.reduce((sum, time) => sum + time, 0);
}

export async function findPostmaster(postgres: Postgres): Promise<number> {
  const [row] = await postgres.query<{ data_directory: string }>('show data_directory');
  return Number((await readFile(`${row!.data_directory}/postmaster.pid`, 'utf8')).split('\n')[0]);
}

/** The time of a process and of all children that it has or had. */
export async function cpuSecondsOfTree(pid: number): Promise<number> {
  const [own, ended, living] = await Promise.all([
    cpuSeconds(pid),
    cpuSecondsOfEndedChildren(pid),
    cpuSecondsOfChildren(pid),
  ]);
  return own + ended + living;
}

export async function readRssMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) / 1024;
}

/** The value of a variable in the environment that a process was started with. Null if it has none. */
export async function readEnvironment(pid: number, name: string): Promise<string | null> {
  const variables = (await readFile(`/proc/${pid}/environ`, 'utf8')).split('\0');
  return variables.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1) ?? null;
}
