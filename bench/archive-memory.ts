/**
 * How much memory the archive needs. Runs the real program on a partition of any size (export, verify, query) and reads from `/proc`
 * how much memory each process used at most. Linux only.
 */
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import type { Query } from './fill-expired.ts';

export interface MemoryFigure {
  readonly command: string;
  readonly peakMb: number;
  readonly seconds: number;
}

export interface MemoryOptions {
  readonly query: Query;
  readonly databaseUrl: string;
  readonly archiveUrl: string;
  /** The file that Node runs as `posthorn`. */
  readonly program: string;
  /** The partition to archive. It must be filled. */
  readonly partition: string;
  /** True: does not measure `posthorn archive query`. */
  readonly skipsQuery?: boolean | undefined;
}

const SAMPLE_MS = 20;
/** As the servers start it. */
const NODE_OPTIONS = '--max-semi-space-size=4';

/** Archives a partition and reads it again. Yields the peak of each process when it has ended. */
export async function* measureArchiveMemory(options: MemoryOptions): AsyncGenerator<MemoryFigure> {
  const { query, databaseUrl, archiveUrl, program, partition, skipsQuery } = options;
  await query(
    `insert into posthorn.archived_partitions (partition, parent, from_at, to_at)
     select name, parent, from_at, to_at from posthorn.partitions where name = $1`,
    [partition],
  );
  const [{ day, kind }] = (await query<{ day: string; kind: string }>(
    "select to_char(from_at at time zone 'UTC', 'YYYY-MM-DD') as day, parent as kind from posthorn.partitions where name = $1",
    [partition],
  )) as [{ day: string; kind: string }];
  const archive = { POSTHORN_ARCHIVE_URL: archiveUrl };
  yield await measure(program, ['archive', 'run'], { ...archive, DATABASE_URL: databaseUrl, NODE_OPTIONS });
  yield await measure(program, ['archive', 'verify', '--kind', kind], archive);
  if (skipsQuery !== true)
    yield await measure(program, ['archive', 'query', '--kind', kind, '--day', day], archive);
}

async function measure(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<MemoryFigure> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [program, ...args], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  let peakMb = 0;
  const sampling = setInterval(async () => {
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '');
    peakMb = Math.max(peakMb, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
  }, SAMPLE_MS);
  const code = await new Promise((resolve) => child.once('close', resolve));
  clearInterval(sampling);
  const command = args.slice(0, 2).join(' ');
  if (code !== 0) throw new Error(`posthorn ${command} ended with ${code}: ${output}`);
  return { command, peakMb, seconds: (performance.now() - startedAt) / 1000 };
}
