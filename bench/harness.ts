/** Starts the real things as processes of their own: PostgreSQL, Posthorn, receiver, load. All on loopback. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { openDirectory } from '../scripts/open-directory.ts';
import { startEmbeddedPostgres } from '../src/postgres/embedded/index.ts';

const script = (name: string) => fileURLToPath(new URL(name, import.meta.url));

export interface Receiver {
  readonly port: number;
  count(): Promise<number>;
  record(on: boolean): void;
  latencies(): Promise<number[]>;
  stop(): void;
}

export async function startReceiver(): Promise<Receiver> {
  const child = fork(script('./receiver.ts'), { serialization: 'advanced' });
  const { port } = await answer<{ port: number }>(child, (message) => 'port' in message);
  return {
    port,
    async count() {
      child.send({ ask: 'count' });
      return (await answer<{ count: number }>(child, (message) => 'count' in message)).count;
    },
    record: (on) => void child.send({ record: on }),
    async latencies() {
      child.send({ ask: 'latencies' });
      return (await answer<{ latencies: number[] }>(child, (message) => 'latencies' in message)).latencies;
    },
    stop: () => child.disconnect(),
  };
}

function answer<T>(child: ChildProcess, wanted: (message: object) => boolean): Promise<T> {
  return new Promise((resolve, reject) => {
    const read = (message: object) => {
      if (!wanted(message)) return;
      child.off('message', read);
      child.off('exit', fail);
      resolve(message as T);
    };
    const fail = (code: number | null) => reject(new Error(`a bench process ended early (${code})`));
    child.on('message', read);
    child.once('exit', fail);
  });
}

export interface Load {
  readonly started: number;
  readonly accepted: number;
  readonly refused: number;
  readonly seconds: number;
  readonly latencies: number[];
  /** Milliseconds since 1970: starting the process that posts is no part of what is measured. */
  readonly beganAt: number;
}

export interface LoadOrder {
  readonly connections?: number;
  readonly events?: number;
  readonly seconds?: number;
  readonly rate?: number;
  readonly bytes?: number;
  readonly batch?: number;
  readonly tenant?: string;
  readonly types?: string[];
}

export async function runLoad(posthorn: Posthorn, order: LoadOrder): Promise<Load> {
  const full = {
    connections: 64,
    events: 0,
    seconds: 60,
    rate: 0,
    bytes: 1000,
    batch: 1,
    tenant: 'bench',
    types: ['order.created'],
    ...order,
    port: posthorn.port,
    key: posthorn.key,
  };
  const child = fork(script('./load.ts'), [JSON.stringify(full)], { serialization: 'advanced' });
  return answer<Load>(child, (message) => 'accepted' in message);
}

export async function runBareLoop(receiver: Receiver, seconds: number, bytes = 1000): Promise<number> {
  const child = fork(script('./bare-loop.ts'), [String(receiver.port), String(seconds), String(bytes)]);
  return (await answer<{ perSecond: number }>(child, (message) => 'perSecond' in message)).perSecond;
}

/**
 * Runs it so many times, with the bare loop before and after each: the machine's speed changes within seconds, and what is
 * measured a minute apart is not to be compared. Each rate is also given as a ratio to the mean of the two beside it.
 */
export async function besideBareLoop(
  receiver: Receiver,
  rounds: number,
  once: () => Promise<number>,
): Promise<{ rates: number[]; ratios: number[] }> {
  const rates: number[] = [];
  const ratios: number[] = [];
  let before = await runBareLoop(receiver, 2);
  for (let round = 0; round < rounds; round += 1) {
    const rate = await once();
    const after = await runBareLoop(receiver, 2);
    rates.push(rate);
    ratios.push(rate / ((before + after) / 2));
    before = after;
  }
  return { rates, ratios };
}

export interface Postgres {
  readonly url: string;
  /** Of everything that is started on it: what one Posthorn sealed, the next one opens. */
  readonly encryptionKey: string;
  query<T extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<T[]>;
  stop(): Promise<void>;
}

export async function startPostgres(): Promise<Postgres> {
  const dataDir = await openDirectory('posthorn-bench-');
  const server = await startEmbeddedPostgres({ dataDir });
  const pool = openPool(server.connectionString, 2);
  return {
    url: server.connectionString,
    encryptionKey: randomBytes(32).toString('base64'),
    query: async (text, values) => (await pool.query(text, values)).rows,
    async stop() {
      await pool.end();
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** A connection may still be closing when its server stops; unheard, that would end the bench. */
export function openPool(connectionString: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString, max });
  pool.on('error', () => {});
  return pool;
}

/** Another database on the same server. Its `stop` only closes the connections to it. */
export async function newDatabase(postgres: Postgres, name: string): Promise<Postgres> {
  await postgres.query(`create database ${name}`);
  const url = postgres.url.replace(/\/[^/?]+(\?|$)/, `/${name}$1`);
  const pool = openPool(url, 2);
  return {
    ...postgres,
    url,
    query: async (text, values) => (await pool.query(text, values)).rows,
    stop: () => pool.end(),
  };
}

export interface Posthorn {
  readonly port: number;
  readonly key: string;
  readonly pids: number[];
  api<T>(method: string, path: string, body?: unknown): Promise<T>;
  stop(): Promise<void>;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export async function startPosthorn(
  postgres: Postgres,
  env: Record<string, string> = {},
  args: string[] = [],
  nodeArgs: string[] = [],
): Promise<Posthorn> {
  const port = await freePort();
  const key = `phk_${randomBytes(24).toString('base64url')}`;
  const child = spawn(process.execPath, [...nodeArgs, script('../src/cli/main.ts'), 'serve', ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...process.env,
      PORT: String(port),
      DATABASE_URL: postgres.url,
      POSTHORN_ADMIN_KEY: key,
      POSTHORN_ENCRYPTION_KEY: postgres.encryptionKey,
      POSTHORN_EGRESS_ALLOW: '127.0.0.0/8',
      POSTHORN_EGRESS_HTTPS: 'except-loopback',
      POSTHORN_LOG_LEVEL: 'warn',
      POSTHORN_LAME_DUCK_MS: '0',
      ...env,
    },
  });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  void exited.then(() => process.off('exit', kill));
  const base = `http://127.0.0.1:${port}`;
  const deadline = Date.now() + 30_000;
  for (;;) {
    const ready = await fetch(`${base}/readyz`)
      .then((response) => response.ok)
      .catch(() => false);
    if (ready) break;
    if (child.exitCode !== null || Date.now() > deadline) throw new Error('Posthorn did not get ready');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    port,
    key,
    pids: [child.pid!],
    async api(method, path, body) {
      const response = await fetch(`${base}${path}`, {
        method,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: body === undefined ? null : JSON.stringify(body),
      });
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
      return response.json() as never;
    },
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

/** 50 endpoints, each subscribed to a type of its own (`fan` of them per type). Returns the types to publish. */
export async function registerEndpoints(
  posthorn: Posthorn,
  receiver: Receiver,
  options: {
    count: number;
    fan?: number;
    path?: (index: number) => string;
    settings?: object;
    tenant?: string;
  },
): Promise<string[]> {
  const { count, fan = 1, path = (index) => `/ok/${index}`, settings = {}, tenant = 'bench' } = options;
  const types = new Set<string>();
  for (let index = 0; index < count; index += 1) {
    const type = `bench.t${Math.floor(index / fan)}`;
    types.add(type);
    await posthorn.api('POST', '/v1/endpoints', {
      tenant,
      url: `http://127.0.0.1:${receiver.port}${path(index)}`,
      events: [type],
      ...settings,
    });
  }
  return [...types];
}

/** Resolves when nothing waits any more: every delivery has been settled. */
export const untilSettled = (postgres: Postgres, seconds: number): Promise<void> =>
  untilSettledBut(postgres, null, seconds);

/** The same, but for one endpoint's deliveries. */
export async function untilSettledBut(
  postgres: Postgres,
  except: string | null,
  seconds: number,
): Promise<void> {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const [row] = await postgres.query<{ waiting: boolean }>(
      `select exists (select from posthorn.endpoints e where e.id is distinct from $1
                         and exists (select from posthorn.queue q where q.endpoint_id = e.id)) as waiting`,
      [except],
    );
    if (!row!.waiting) return;
    if (Date.now() > deadline) throw new Error('deliveries are still waiting');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export function percentile(values: readonly number[], p: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))]!;
}

export const median = (values: readonly number[]): number => percentile(values, 0.5);
