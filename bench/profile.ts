/**
 * Shows where the processor time of an event goes: starts a node with one process that accepts and one that delivers,
 * measures both and PostgreSQL, profiles both, and prints the time by hop. Linux only, because it reads /proc.
 *
 *   node bench/profile.ts --clients 2 --svg flame.svg
 *   node bench/profile.ts --clients 8 --batch 100 --events 100000   # published and sent 100 per request
 *   node bench/profile.ts --top 30   # also the functions that take most of the time
 */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { drawFlameGraph, type Profile, visitStacks } from './flame-graph.ts';
import {
  type Postgres,
  type Posthorn,
  registerEndpoints,
  runLoad,
  startPostgres,
  startPosthorn,
  startReceiver,
  waitUntilSettled,
} from './harness.ts';
import { readChildPids, readEnvironment, readPostmasterPid, readTreeSeconds } from './process-figures.ts';

const { values } = parseArgs({
  options: {
    clients: { type: 'string', default: '2' },
    events: { type: 'string', default: '20000' },
    batch: { type: 'string', default: '1' },
    bytes: { type: 'string', default: '300' },
    top: { type: 'string', default: '0' },
    svg: { type: 'string' },
    title: { type: 'string', default: '' },
  },
});
const clients = Number(values.clients);
const events = Number(values.events);
const batch = Number(values.batch);
const bytes = Number(values.bytes);

type Role = 'api' | 'worker';
const NAMES: Readonly<Record<Role, string>> = {
  api: 'process that accepts',
  worker: 'process that delivers',
};

/** The first rule whose pattern matches the file of the innermost function that any rule knows is the hop. */
const HOPS: readonly (readonly [name: string, place: RegExp])[] = [
  [
    'HTTP server: read the request, authenticate, answer',
    /^(src\/api|fastify|find-my-way|node:_http|node:http)/,
  ],
  ['check, match, gather a batch', /^src\/(ingest|catalogue|create-ingest)/],
  ['write to PostgreSQL and read its answers', /^(src\/postgres|pg|pg-protocol|pg-pool)\b/],
  ['request: sign, send, read the answer', /^(src\/deliver|undici)/],
  ['route, hand over, lanes, turns', /^(src\/dispatch|src\/create-engine)/],
  ['gather results', /^src\/settle/],
  ['metrics, statistics, log', /^(src\/telemetry|src\/upkeep|pino|sonic-boom)/],
];
const GARBAGE = 'garbage collection';
const OTHER = 'event loop of Node, other';

function sumByHop(profile: Profile): Map<string, number> {
  const sums = new Map<string, number>();
  visitStacks(profile, (stack, us) => {
    const hop =
      stack[0]!.functionName === '(garbage collector)'
        ? GARBAGE
        : (stack.map(({ place }) => HOPS.find(([, pattern]) => pattern.test(place))?.[0]).find(Boolean) ??
          OTHER);
    sums.set(hop, (sums.get(hop) ?? 0) + us);
  });
  return sums;
}

/** Prints the functions that take most of the time themselves. */
function printTop(role: Role, profile: Profile, usPerEvent: number): void {
  const sums = new Map<string, number>();
  let total = 0;
  visitStacks(profile, (stack, us) => {
    const { functionName, place } = stack[0]!;
    const name = `${functionName} ${place}`;
    sums.set(name, (sums.get(name) ?? 0) + us);
    total += us;
  });
  const top = [...sums].sort((a, b) => b[1] - a[1]).slice(0, Number(values.top));
  for (const [name, us] of top) console.log(`${role} ${((usPerEvent * us) / total).toFixed(2)} µs ${name}`);
}

/** Returns the processor time of PostgreSQL's processes in seconds: sessions by their purpose, and all others. */
async function readPostgresSeconds(postgres: Postgres): Promise<Map<string, number>> {
  const sessions = await postgres.query<{ pid: number; name: string }>(
    `select pid, application_name as name from pg_stat_activity
      where backend_type = 'client backend' and application_name like 'posthorn %'`,
  );
  const seconds = new Map<string, number>();
  const add = (name: string, value: number): void => void seconds.set(name, (seconds.get(name) ?? 0) + value);
  for (const { pid, name } of sessions) add(name.replace('posthorn ', ''), await readTreeSeconds(pid));
  const total = await readTreeSeconds(await readPostmasterPid(postgres));
  add('all other processes', total - [...seconds.values()].reduce((sum, value) => sum + value, 0));
  return seconds;
}

async function readChildren(posthorn: Posthorn): Promise<Map<Role, number>> {
  const pids = new Map<Role, number>();
  for (const pid of await readChildPids(posthorn.pid)) {
    const role = await readEnvironment(pid, 'POSTHORN_CHILD_ROLE');
    if (role !== null) pids.set(role as Role, pid);
  }
  return pids;
}

const [postgres, receiver] = [await startPostgres(), await startReceiver()];
const folder = await mkdtemp(path.join(tmpdir(), 'posthorn-profiles-'));
const posthorn = await startPosthorn(
  postgres,
  {
    BENCH_PROFILES: folder,
    NODE_OPTIONS: `--import=${new URL('./profiled-process.ts', import.meta.url).href}`,
  },
  ['--processes', '2'],
);
try {
  const settings = batch > 1 ? { batch: { max_events: batch, max_wait_ms: 200 } } : {};
  const types = await registerEndpoints(posthorn, receiver, { count: 1, settings });
  const run = async (count: number, connections: number): Promise<void> => {
    await runLoad(posthorn, { events: count, connections, types, bytes, batch, seconds: 600 });
    await waitUntilSettled(postgres, 60);
  };
  await run(20_000, batch > 1 ? clients : 64);
  await run(events / 4, clients);

  const children = await readChildren(posthorn);
  const read = async () => ({
    node: new Map(
      await Promise.all(
        [...children].map(async ([role, pid]) => [role, await readTreeSeconds(pid)] as const),
      ),
    ),
    postgres: await readPostgresSeconds(postgres),
  });
  const before = await read();
  await run(events, clients);
  const after = await read();
  const usPerEvent = (from: number | undefined, to: number): number => ((to - (from ?? 0)) * 1e6) / events;

  for (const pid of children.values()) process.kill(pid, 'SIGUSR2');
  await run(events, clients);
  for (const pid of children.values()) process.kill(pid, 'SIGUSR2');
  const profiles = new Map<Role, Profile>();
  for (const role of children.keys()) {
    const file = path.join(folder, `${role}.cpuprofile`);
    while (!existsSync(file)) await sleep(100);
    profiles.set(role, JSON.parse(await readFile(file, 'utf8')));
  }

  const rows: [place: string, part: string, us: number][] = [];
  for (const [role, profile] of profiles) {
    const us = usPerEvent(before.node.get(role), after.node.get(role)!);
    const hops = sumByHop(profile);
    const total = [...hops.values()].reduce((sum, value) => sum + value, 0);
    rows.push([`**${NAMES[role]}**`, '', us]);
    printTop(role, profile, us);
    for (const name of [...HOPS.map(([name]) => name), GARBAGE, OTHER])
      if ((hops.get(name) ?? 0) / total > 0.01) rows.push(['', name, (us * hops.get(name)!) / total]);
  }
  const sessions = [...after.postgres].map(
    ([name, seconds]) => [name, usPerEvent(before.postgres.get(name), seconds)] as const,
  );
  rows.push(['**PostgreSQL**', '', sessions.reduce((sum, [, us]) => sum + us, 0)]);
  for (const [name, us] of sessions.filter(([, us]) => us >= 1))
    rows.push(['', name === 'all other processes' ? name : `session for ${name}`, us]);

  const total = rows.filter(([place]) => place !== '').reduce((sum, [, , us]) => sum + us, 0);
  console.log(`| | ${clients} clients | µs |\n| --- | --- | ---: |`);
  for (const [place, part, us] of rows) console.log(`| ${place} | ${part} | ${us.toFixed(0)} |`);
  console.log(`| **sum** | | ${total.toFixed(0)} |`);
  if (values.svg !== undefined) {
    const title = `${values.title}${clients} clients, ${total.toFixed(0)} µs per event with PostgreSQL`;
    const named = new Map([...profiles].map(([role, profile]) => [NAMES[role], profile]));
    await writeFile(values.svg, drawFlameGraph(title, named));
  }
} finally {
  await posthorn.stop();
  receiver.stop();
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
}
