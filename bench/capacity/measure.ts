/** Measures what one load costs: CPU of each kind of process, write-ahead log, disk, memory and connections. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Postgres,
  type Posthorn,
  type Receiver,
  registerEndpoints,
  runLoad,
  startPosthorn,
  waitUntilSettled,
} from '../harness.ts';
import {
  readChildPids,
  readEnvironment,
  readPostmasterPid,
  readRssMb,
  readTreeSeconds,
} from '../process-figures.ts';

/** A load, and the endpoints that get it. */
export interface Load {
  readonly name: string;
  /** Events per second. */
  readonly rate: number;
  readonly seconds: number;
  readonly endpoints: number;
  /** Endpoints per event. 0: nobody subscribes to the events. */
  readonly fanOut: number;
  readonly bytes: number;
  /** The share of endpoints that fail every attempt. */
  readonly failing?: number;
  /** How often a delivery to such an endpoint is attempted, one second apart. */
  readonly attempts?: number;
  readonly tenants?: number;
}

export interface Sample {
  readonly load: Load;
  readonly seconds: number;
  readonly events: number;
  readonly deliveries: number;
  readonly retries: number;
  /** CPU seconds. */
  readonly cpu: { readonly api: number; readonly worker: number; readonly postgres: number };
  readonly transactions: number;
  readonly walBytes: number;
  readonly diskBytes: number;
  readonly connections: number;
  /** Megabytes of each process at the end. */
  readonly memory: { readonly api: number; readonly worker: number };
}

/** A node with one process that accepts and one that delivers, as `serve --processes 2` has them. */
export interface Node {
  readonly posthorn: Posthorn;
  readonly pids: { readonly api: number; readonly worker: number };
}

export async function startNode(postgres: Postgres, env: Record<string, string> = {}): Promise<Node> {
  const posthorn = await startPosthorn(
    postgres,
    { POSTHORN_MAX_ENDPOINTS_PER_TENANT: '1000000', ...env },
    ['--processes', '2'],
    ['--max-old-space-size=8000'],
    300,
  );
  const pids = new Map<string | null, number>();
  for (const pid of await readChildPids(posthorn.pid))
    pids.set(await readEnvironment(pid, 'POSTHORN_CHILD_ROLE'), pid);
  return { posthorn, pids: { api: pids.get('api')!, worker: pids.get('worker')! } };
}

interface Counters {
  readonly at: number;
  readonly cpu: Sample['cpu'];
  readonly transactions: number;
  readonly wal: number;
  readonly disk: number;
  readonly received: number;
}

/** Runs a load and waits until every delivery ended. Counts all that it cost, also what was done after the last event. */
export async function measure(
  postgres: Postgres,
  receiver: Receiver,
  node: Node,
  load: Load,
): Promise<Sample> {
  const target = await prepare(receiver, node, load);
  // Autovacuum of an earlier load must not be counted, and the first write to each page after a checkpoint logs all of it.
  await postgres.query('vacuum analyze');
  await postgres.query('checkpoint');
  const before = await readCounters(postgres, receiver, node);
  const { accepted } = await runLoad(node.posthorn, {
    rate: load.rate,
    seconds: load.seconds,
    bytes: load.bytes,
    isRandom: true,
    ...target,
  });
  await waitUntilSettled(postgres, 120);
  // Statistics are added up once a second or less often.
  await sleep(2_000);
  const after = await readCounters(postgres, receiver, node);
  const [row] = await postgres.query<{ count: number }>(
    "select count(*)::int as count from pg_stat_activity where usename is not null and application_name like 'posthorn%'",
  );
  const deliveries = accepted * load.fanOut;
  return {
    load,
    seconds: (after.at - before.at) / 1000,
    events: accepted,
    deliveries,
    retries: after.received - before.received - deliveries,
    cpu: {
      api: after.cpu.api - before.cpu.api,
      worker: after.cpu.worker - before.cpu.worker,
      postgres: after.cpu.postgres - before.cpu.postgres,
    },
    transactions: after.transactions - before.transactions,
    walBytes: after.wal - before.wal,
    diskBytes: after.disk - before.disk,
    connections: row!.count,
    memory: { api: await readRssMb(node.pids.api), worker: await readRssMb(node.pids.worker) },
  };
}

/** Registers the endpoints of a load and returns where its events go. */
async function prepare(receiver: Receiver, { posthorn }: Node, load: Load) {
  const tenant = load.name.replaceAll(/\W+/g, '-');
  if (load.fanOut === 0) return { tenant, types: ['nobody.listens'] };
  const { failing = 0, attempts = 3, tenants = 1 } = load;
  const isFailing = (index: number): boolean => index < Math.round(failing * load.endpoints);
  const schedule = [0, ...Array.from({ length: attempts - 1 }, () => 1)];
  const settings = { breaker: null, retry: { schedule, jitter: 'none' } };
  const path = (index: number): string => (isFailing(index) ? `/fail/${index}` : `/ok/${index}`);
  if (tenants === 1)
    return {
      tenant,
      types: await registerEndpoints(posthorn, receiver, {
        count: load.endpoints,
        fan: load.fanOut,
        path,
        settings,
        tenant,
      }),
    };
  for (let index = 0; index < tenants; index += 1)
    await registerEndpoints(posthorn, receiver, { count: 1, path, settings, tenant: `${tenant}-${index}` });
  return { tenant, tenants, types: ['bench.t0'] };
}

async function readCounters(postgres: Postgres, receiver: Receiver, { pids }: Node): Promise<Counters> {
  const postmaster = await readPostmasterPid(postgres);
  const [row] = await postgres.query<{ wal: string; disk: string; transactions: string }>(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::text as wal,
            (select sum(pg_total_relation_size(c.oid)) from pg_class c
              where c.relnamespace = 'posthorn'::regnamespace and c.relkind in ('r', 'm'))::text as disk,
            (select xact_commit from pg_stat_database where datname = current_database())::text as transactions`,
  );
  return {
    at: performance.now(),
    cpu: {
      api: await readTreeSeconds(pids.api),
      worker: await readTreeSeconds(pids.worker),
      postgres: await readTreeSeconds(postmaster),
    },
    transactions: Number(row!.transactions),
    wal: Number(row!.wal),
    disk: Number(row!.disk),
    received: await receiver.count(),
  };
}
