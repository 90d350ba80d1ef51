/**
 * `npm run soak -- --minutes 30 --rate 1000`: publishes at a fixed rate to `serve --processes 2` on the embedded
 * PostgreSQL. Each minute it prints memory, connections, file handles, latency, and the size of tables that must not grow.
 * At the end it says whether these figures stayed flat and whether everything arrived. Linux only: it reads /proc.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import {
  type Postgres,
  type Posthorn,
  type Receiver,
  registerEndpoints,
  runLoad,
  startPostgres,
  startPosthorn,
  startReceiver,
} from '../bench/harness.ts';
import { childrenOf } from '../test/support/process-tree.ts';
import { judgeSoak, type SoakMinute } from './soak-verdict.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    rate: { type: 'string', default: '1000' },
    processes: { type: 'string', default: '2' },
    endpoints: { type: 'string', default: '50' },
    bytes: { type: 'string', default: '300' },
    /** Length of a "minute", to try the script itself. */
    seconds: { type: 'string', default: '60' },
  },
});
const [minutes, rate, endpoints, bytes, seconds] = [
  values.minutes,
  values.rate,
  values.endpoints,
  values.bytes,
  values.seconds,
].map(Number) as [number, number, number, number, number];

/** Tables whose rows are deleted soon after they were written. Without VACUUM they would grow with every event. */
const BOUNDED_TABLES = ['queue', 'stats_journal', 'endpoint_health', 'workers', 'shards'];

interface Minute extends SoakMinute {
  readonly accepted: number;
  readonly refused: number;
  readonly databaseMb: number;
}

/** The figures are taken while the load runs: at its end, connections of the clients close. */
async function runMinute(
  posthorn: Posthorn,
  postgres: Postgres,
  receiver: Receiver,
  types: string[],
): Promise<Minute> {
  const load = runLoad(posthorn, { rate, seconds, bytes, types });
  await sleep(seconds * 900);
  const pids = processesOf(posthorn.pid);
  const [database] = await postgres.query<{ connections: number; mb: number; bounded_mb: number }>(
    `select (select count(*)::int from pg_stat_activity where application_name like 'posthorn %') as connections,
            pg_database_size(current_database()) / 1e6 as mb,
            (select sum(pg_total_relation_size(oid)) / 1e6 from pg_class where relnamespace = 'posthorn'::regnamespace
                and relname = any ($1)) as bounded_mb`,
    [BOUNDED_TABLES],
  );
  const rssMb =
    sum(pids.map((pid) => Number(/VmRSS:\s+(\d+)/.exec(procFile(pid, 'status'))?.[1] ?? 0))) / 1024;
  const handles = sum(pids.map(countHandles));
  const { latencies, accepted, rejected: refused } = await load;
  const delivered = await receiver.takeLatencies();
  return {
    rssMb,
    connections: database!.connections,
    handles,
    acceptP50Ms: percentile(latencies, 0.5),
    acceptP99Ms: percentile(latencies, 0.99),
    deliverP50Ms: percentile(delivered, 0.5),
    deliverP99Ms: percentile(delivered, 0.99),
    accepted,
    refused,
    databaseMb: Number(database!.mb),
    boundedTablesMb: Number(database!.bounded_mb),
  };
}

const processesOf = (pid: number): number[] => [pid, ...childrenOf(pid).flatMap(processesOf)];

function procFile(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return '';
  }
}

function countHandles(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

function percentile(numbers: readonly number[], share: number): number {
  const sorted = Float64Array.from(numbers).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

function print(number: number, minute: Minute): void {
  const ms = (value: number) => value.toFixed(1).padStart(7);
  console.log(
    [
      String(number).padStart(6),
      String(Math.round(minute.accepted / seconds)).padStart(7),
      String(minute.refused).padStart(7),
      minute.rssMb.toFixed(0).padStart(7),
      String(minute.connections).padStart(11),
      String(minute.handles).padStart(7),
      ms(minute.acceptP50Ms),
      ms(minute.acceptP99Ms),
      ms(minute.deliverP50Ms),
      ms(minute.deliverP99Ms),
      minute.boundedTablesMb.toFixed(1).padStart(8),
      minute.databaseMb.toFixed(0).padStart(8),
    ].join('  '),
  );
}

/** Waits until nothing more arrives for five seconds. Returns how many requests the receiver got. */
async function untilQuiet(receiver: Receiver, expected: number): Promise<number> {
  let last = -1;
  for (;;) {
    const count = await receiver.count();
    if (count === last || count >= expected) return count;
    last = count;
    await sleep(5000);
  }
}

function report(figures: readonly Minute[], arrived: number): boolean {
  const accepted = sum(figures.map((minute) => minute.accepted));
  console.log(`${accepted} events accepted, ${arrived} requests arrived.`);
  const findings = judgeSoak(figures);
  if (findings === null)
    console.log('Too short to tell whether the figures stay flat: run 5 minutes or more.');
  for (const { figure, first, last, isFlat } of findings ?? [])
    console.log(`${figure}: ${first.toFixed(1)} → ${last.toFixed(1)}${isFlat ? '' : '   GREW'}`);
  const isFlat = (findings ?? []).every((finding) => finding.isFlat);
  if (findings !== null) console.log(isFlat ? 'All figures stayed flat.' : 'Some figures grew.');
  if (arrived < accepted) console.log(`MISSING: ${accepted - arrived} events did not arrive.`);
  return isFlat && arrived >= accepted;
}

const [postgres, receiver] = await Promise.all([startPostgres(), startReceiver()]);
const posthorn = await startPosthorn(postgres, {}, ['--processes', values.processes]);
try {
  const types = await registerEndpoints(posthorn, receiver, { count: endpoints });
  receiver.recordLatencies(true);
  console.log(
    'minute  events/s  refused  rss MB  connections  handles  accept p50, p99 ms  delivery p50, p99 ms  queue MB  database MB',
  );
  const figures: Minute[] = [];
  while (figures.length < minutes) {
    figures.push(await runMinute(posthorn, postgres, receiver, types));
    print(figures.length, figures.at(-1)!);
  }
  const arrived = await untilQuiet(receiver, sum(figures.map((minute) => minute.accepted)));
  process.exitCode = report(figures, arrived) ? 0 : 1;
} finally {
  await posthorn.stop();
  receiver.stop();
  await postgres.stop();
}
