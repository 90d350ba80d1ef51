/** Starts PostgreSQL, Posthorn, the receiver and the load generator, each as its own process, all on loopback. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { openDirectory } from '../scripts/open-directory.ts';
import { startEmbeddedPostgres } from '../src/postgres/embedded/index.ts';

const resolveScript = (name: string) => fileURLToPath(new URL(name, import.meta.url));

export interface Receiver {
  readonly port: number;
  /** Returns how many requests arrived. */
  count(): Promise<number>;
  /** Turns the recording of latencies on or off. */
  recordLatencies(isOn: boolean): void;
  /** Returns the milliseconds from sending to arrival of each recorded request, and forgets them. */
  takeLatencies(): Promise<number[]>;
  stop(): void;
}

export async function startReceiver(): Promise<Receiver> {
  const child = fork(resolveScript('./receiver.ts'), { serialization: 'advanced' });
  const { port } = await waitForMessage<{ port: number }>(child, (message) => 'port' in message);
  return {
    port,
    async count() {
      child.send({ ask: 'count' });
      return (await waitForMessage<{ count: number }>(child, (message) => 'count' in message)).count;
    },
    recordLatencies: (isOn) => void child.send({ record: isOn }),
    async takeLatencies() {
      child.send({ ask: 'latencies' });
      return (await waitForMessage<{ latencies: number[] }>(child, (message) => 'latencies' in message))
        .latencies;
    },
    stop: () => child.disconnect(),
  };
}

/** Resolves with the first message that matches. Rejects if the process exits before. */
export function waitForMessage<T>(child: ChildProcess, isMatch: (message: object) => boolean): Promise<T> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: object) => {
      if (!isMatch(message)) return;
      child.off('message', onMessage);
      child.off('exit', onExit);
      resolve(message as T);
    };
    const onExit = (code: number | null) => reject(new Error(`a bench process exited early (code ${code})`));
    child.on('message', onMessage);
    child.once('exit', onExit);
  });
}

export interface LoadResult {
  readonly accepted: number;
  readonly rejected: number;
  readonly seconds: number;
  /** Milliseconds from request to response. */
  readonly latencies: number[];
  /** When the first request was sent, in milliseconds since 1970. Excludes the start of the load process. */
  readonly startedAt: number;
}

/** Accepted events per second, from the first request until now. */
export const computeRate = ({ accepted, startedAt }: LoadResult): number =>
  accepted / ((performance.timeOrigin + performance.now() - startedAt) / 1000);

export interface LoadOptions {
  readonly connections?: number;
  /** Stops after this many events; 0: no limit. */
  readonly events?: number;
  /** Stops after this time. */
  readonly seconds?: number;
  /** Events per second; 0: as fast as responses arrive. */
  readonly rate?: number;
  readonly bytes?: number;
  /** Events per request. */
  readonly batch?: number;
  readonly tenant?: string;
  /** More than 1: tenants take turns, named `<tenant>-0` and so on. */
  readonly tenants?: number;
  /** Random data: PostgreSQL cannot compress it. */
  readonly isRandom?: boolean;
  readonly types?: string[];
}

export async function runLoad(
  posthorn: Pick<Posthorn, 'port' | 'key'>,
  options: LoadOptions,
): Promise<LoadResult> {
  const allOptions = {
    connections: 64,
    events: 0,
    seconds: 60,
    rate: 0,
    bytes: 1000,
    batch: 1,
    tenant: 'bench',
    tenants: 1,
    isRandom: false,
    types: ['order.created'],
    ...options,
    port: posthorn.port,
    key: posthorn.key,
  };
  const child = fork(resolveScript('./load.ts'), [JSON.stringify(allOptions)], { serialization: 'advanced' });
  return waitForMessage<LoadResult>(child, (message) => 'accepted' in message);
}

/** Returns the requests per second of the baseline. */
export const runBareLoop = async (receiver: Receiver, seconds: number): Promise<number> =>
  (await measureBareLoop(receiver, seconds)).perSecond;

export interface BareLoopResult {
  readonly perSecond: number;
  readonly cpuUsPerRequest: number;
}

export function measureBareLoop(receiver: Receiver, seconds: number, bytes = 1000): Promise<BareLoopResult> {
  const child = fork(resolveScript('./bare-loop.ts'), [
    String(receiver.port),
    String(seconds),
    String(bytes),
  ]);
  return waitForMessage<BareLoopResult>(child, (message) => 'perSecond' in message);
}

/**
 * Runs a measurement several times, with the bare loop before and after each run, because the speed of the machine changes
 * within seconds. Returns the rates, and the ratio of each rate to the mean of the two bare loops around it.
 */
export async function compareWithBareLoop(
  receiver: Receiver,
  rounds: number,
  measureRate: () => Promise<number>,
): Promise<{ rates: number[]; ratios: number[] }> {
  const rates: number[] = [];
  const ratios: number[] = [];
  let before = await runBareLoop(receiver, 2);
  for (let round = 0; round < rounds; round += 1) {
    const rate = await measureRate();
    const after = await runBareLoop(receiver, 2);
    rates.push(rate);
    ratios.push(rate / ((before + after) / 2));
    before = after;
  }
  return { rates, ratios };
}

export interface Postgres {
  readonly url: string;
  /** The same for every Posthorn on this database, because they share encrypted secrets. */
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

/** Ignores connection errors: a connection that closes while its server stops would otherwise end the bench. */
export function openPool(connectionString: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString, max });
  pool.on('error', () => {});
  return pool;
}

/** Creates another database on the same server. Its `stop` only closes the connections to it. */
export async function createDatabase(postgres: Postgres, name: string): Promise<Postgres> {
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
  readonly pid: number;
  api<T>(method: string, path: string, body?: unknown): Promise<T>;
  stop(): Promise<void>;
}

async function findFreePort(): Promise<number> {
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
  readySeconds = 30,
  program = resolveScript('../src/cli/main.ts'),
): Promise<Posthorn> {
  const port = await findFreePort();
  const key = `phk_${randomBytes(24).toString('base64url')}`;
  const child = spawn(process.execPath, [...nodeArgs, program, 'serve', ...args], {
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
      // A node that only accepts is started before the one that delivers.
      POSTHORN_READY_NEEDS_WORKERS: 'false',
      ...env,
    },
  });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  void exited.then(() => process.off('exit', kill));
  const baseUrl = `http://127.0.0.1:${port}`;
  const deadline = Date.now() + readySeconds * 1000;
  for (;;) {
    const isReady = await fetch(`${baseUrl}/readyz`)
      .then((response) => response.ok)
      .catch(() => false);
    if (isReady) break;
    if (child.exitCode !== null || Date.now() > deadline)
      throw new Error(`Posthorn was not ready within ${readySeconds} seconds`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    port,
    key,
    pid: child.pid!,
    async api(method, path, body) {
      const response = await fetch(`${baseUrl}${path}`, {
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

/** Creates endpoints, `fan` of them per event type, and returns the types. */
export async function registerEndpoints(
  posthorn: Posthorn,
  receiver: Receiver,
  options: {
    count: number;
    fan?: number;
    path?: (index: number) => string;
    settings?: object;
    tenant?: string;
    typePrefix?: string;
  },
): Promise<string[]> {
  const { count, fan = 1, path = (index) => `/ok/${index}`, settings = {} } = options;
  const { tenant = 'bench', typePrefix = 'bench' } = options;
  const types = new Set<string>();
  for (let index = 0; index < count; index += 1) {
    const type = `${typePrefix}.t${Math.floor(index / fan)}`;
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

/** Resolves when the queue is empty: every delivery is settled. */
export const waitUntilSettled = (postgres: Postgres, seconds: number): Promise<void> =>
  waitUntilSettledExcept(postgres, null, seconds);

/** Resolves when the queue is empty except for the deliveries of one endpoint. */
export async function waitUntilSettledExcept(
  postgres: Postgres,
  exceptEndpoint: string | null,
  seconds: number,
): Promise<void> {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const [row] = await postgres.query<{ waiting: boolean }>(
      `select exists (select from posthorn.endpoints e where e.id is distinct from $1
                         and exists (select from posthorn.queue q where q.endpoint_id = e.id)) as waiting`,
      [exceptEndpoint],
    );
    if (!row!.waiting) return;
    if (Date.now() > deadline) throw new Error(`deliveries are still waiting after ${seconds} seconds`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export function percentile(values: readonly number[], p: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))]!;
}

export const median = (values: readonly number[]): number => percentile(values, 0.5);
