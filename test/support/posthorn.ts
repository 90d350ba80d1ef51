/**
 * Runs the real program in tests, and calls its API.
 *
 *   const posthorn = usePosthorn();                        // for all tests of a file
 *   const posthorn = await startTestPosthorn({ database }) // for one test; the caller stops or kills it
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, inject, onTestFinished } from 'vitest';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { eventually } from './eventually.ts';
import type {} from './kafka/backbone.ts';
import { backboneSettings } from './kafka/settings.ts';
import { startProcess } from './processes.ts';
import { type Receiver, type ReceiverOptions, type RecordedRequest, startReceiver } from './receiver.ts';

/** The bundled program; see program.ts. */
export const MAIN = inject('program');
/** The program as `npm start` runs it. */
export const SOURCE = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The body as JSON; undefined if there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts on the parts it knows
  readonly body: any;
}

export interface CallOptions {
  /** Instead of the admin key; null sends none. */
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** The call fails if there is no answer within this time. */
  readonly timeoutMs?: number;
}

/** Text and bytes are sent as they are, everything else as JSON. */
export type Call = (method: string, path: string, body?: unknown, options?: CallOptions) => Promise<Answer>;

export interface TestPosthorn {
  readonly url: string;
  readonly key: string;
  readonly api: Call;
  /** 0 if it runs in this process. */
  readonly pid: number;
  /** Sends the signal, and resolves with exit code or signal when the process has ended. */
  kill(signal: NodeJS.Signals): Promise<number | NodeJS.Signals>;
  /** Sends SIGTERM. Throws if the exit code is not 0. */
  stop(): Promise<void>;
  /** Everything that it has printed so far. */
  output(): string;
}

export interface TestPosthornOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  readonly database: { readonly url: string };
  /** Runs it in the test's process: quicker, but it cannot be killed. */
  readonly inProcess?: boolean;
  /** How many descriptors the process may open. */
  readonly descriptors?: number;
}

export const ADMIN_KEY = `phk_${randomBytes(24).toString('base64url')}`;
const ENCRYPTION_KEY = randomBytes(32).toString('base64');

/**
 * Allows loopback and shortens all times. Sweeps are practically off: they find the deliveries of a lost wake-up and
 * would hide that it was lost.
 */
export const TEST_SETTINGS: Readonly<Record<string, string>> = {
  PORT: '0',
  POSTHORN_ADMIN_KEY: ADMIN_KEY,
  POSTHORN_ENCRYPTION_KEY: ENCRYPTION_KEY,
  POSTHORN_EGRESS_ALLOW: '127.0.0.0/8',
  POSTHORN_EGRESS_HTTPS: 'except-loopback',
  POSTHORN_LOG_LEVEL: 'info',
  POSTHORN_DATABASE_POOL_SIZE: '4',
  POSTHORN_HEARTBEAT_MS: '100',
  POSTHORN_PROOF_MS: '500',
  POSTHORN_DEAD_AFTER_MS: '3000',
  POSTHORN_SWEEP_MS: '1h',
  // The tests themselves may make the process or the database slow.
  POSTHORN_SHED_LOOP_DELAY_MS: '0',
  POSTHORN_SHED_COMMIT_MS: '0',
  POSTHORN_LAME_DUCK_MS: '0',
  // Tests start API servers without workers, and kill workers.
  POSTHORN_READY_NEEDS_WORKERS: 'false',
};

export async function startTestPosthorn(options: TestPosthornOptions): Promise<TestPosthorn> {
  const broker = inject('kafkaBackbone');
  const env: Record<string, string> = {
    ...TEST_SETTINGS,
    ...(broker !== undefined && backboneSettings(broker, options.database.url)),
    DATABASE_URL: options.database.url,
    ...options.env,
  };
  const key = env.POSTHORN_ADMIN_KEY!;
  return options.inProcess
    ? startHere(env, key)
    : runPosthorn(['serve', ...(options.args ?? [])], env, key, { descriptors: options.descriptors });
}

/**
 * Runs a server command of the real program and resolves when it is ready. Without `key`, uses the one that it prints.
 */
export async function runPosthorn(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  key?: string,
  { cwd, main = MAIN, descriptors }: { cwd?: string; main?: string; descriptors?: number | undefined } = {},
): Promise<TestPosthorn> {
  const child = startProcess([main, ...args], { env, cwd, descriptors });
  const printed = (pattern: RegExp, what: string) =>
    eventually(
      `Posthorn prints ${what}`,
      () => {
        if (!child.running) throw new Error(`Posthorn ended before it was ready:\n${child.output()}`);
        return pattern.exec(child.stdout())?.[1];
      },
      { timeoutMs: 90_000, saw: child.output },
    );
  const client = new Agent({ connections: 50 });
  try {
    const url = await printed(/API\s+(http:\/\/\S+)\/v1/, 'its address');
    const adminKey = key ?? (await printed(/Admin key\s+(\S+)/, 'its admin key'));
    const api = caller(client, url, adminKey);
    await eventually('GET /readyz is 200', async () => (await api('GET', '/readyz')).status === 200);
    return {
      url,
      key: adminKey,
      api,
      pid: child.pid,
      output: child.output,
      async kill(signal) {
        const ended = await child.kill(signal);
        await client.destroy();
        return ended;
      },
      async stop() {
        if (!child.running) return;
        const ended = await child.kill('SIGTERM');
        await client.destroy();
        if (ended !== 0) throw new Error(`Posthorn ended with ${ended}:\n${child.output()}`);
      },
    };
  } catch (error) {
    await client.destroy();
    await child.kill('SIGKILL');
    throw error;
  }
}

async function startHere(env: Readonly<Record<string, string>>, key: string): Promise<TestPosthorn> {
  const [{ startApp }, { ensureKeys, loadConfig }, { createLog }] = await Promise.all([
    import('../../src/app.ts'),
    import('../../src/config/index.ts'),
    import('../../src/telemetry/log.ts'),
  ]);
  const config = await ensureKeys(loadConfig({ mode: 'serve', env }), { notice: () => {} });
  const log = createLog({ ...config, logLevel: 'silent' });
  const app = await startApp({ config: { ...config, databaseUrl: env.DATABASE_URL! }, log });
  const client = new Agent({ connections: 50 });
  const api = caller(client, app.url, key);
  await eventually('GET /readyz is 200', async () => (await api('GET', '/readyz')).status === 200);
  return {
    url: app.url,
    key,
    api,
    pid: 0,
    output: () => '',
    kill: () => Promise.reject(new Error('This Posthorn runs in the process of the test.')),
    async stop() {
      await client.destroy();
      await app.stop();
    },
  };
}

/** Reads the first chunk of an endless answer. Use `openTail` to read more. */
async function beginningOf(body: Readable): Promise<string> {
  const [chunk] = (await once(body, 'data')) as [Buffer];
  body.on('error', () => {});
  body.destroy();
  return chunk.toString();
}

function caller(client: Agent, url: string, adminKey: string): Call {
  return async (method, path, body, { key = adminKey, headers = {}, timeoutMs = 20_000 } = {}) => {
    const raw = typeof body === 'string' || Buffer.isBuffer(body);
    const response = await request(`${url}${path}`, {
      dispatcher: client,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      method: method as 'GET',
      headers: {
        ...(key !== null && { authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? null : raw ? body : JSON.stringify(body),
    });
    const isStream = /event-stream/.test(String(response.headers['content-type']));
    const text = await (isStream ? beginningOf(response.body) : response.body.text());
    const isJson = /json/.test(String(response.headers['content-type']));
    return {
      status: response.statusCode,
      headers: response.headers,
      text,
      body: isJson && text !== '' ? JSON.parse(text) : undefined,
    };
  };
}

type SharedOptions = Omit<TestPosthornOptions, 'database'>;
type SharedPosthorn = TestPosthorn & { readonly database: TestDatabase };

/** One Posthorn for all tests of a file, with its own database. Usable only inside tests and hooks. */
export const usePosthorn = (options: SharedOptions = {}): SharedPosthorn => usePosthorns(options)[0];

/** Several Posthorns on one database for all tests of a file. Usable only inside tests and hooks. */
export function usePosthorns<const Each extends readonly SharedOptions[]>(
  ...each: Each
): { readonly [Index in keyof Each]: SharedPosthorn } {
  const started: TestPosthorn[] = [];
  let database: TestDatabase | undefined;
  beforeAll(async () => {
    const created = await createTestDatabase();
    database = created;
    await Promise.all(
      each.map(async (options, index) => {
        started[index] = await startTestPosthorn({ ...options, database: created });
      }),
    );
  });
  afterAll(async () => {
    await Promise.all(started.map((posthorn) => posthorn.stop()));
    await database?.drop();
  });
  const shared = each.map(
    (_, index): SharedPosthorn => ({
      get url() {
        return started[index]!.url;
      },
      get key() {
        return started[index]!.key;
      },
      get pid() {
        return started[index]!.pid;
      },
      get database() {
        return database!;
      },
      api: (...call) => started[index]!.api(...call),
      kill: (signal) => started[index]!.kill(signal),
      stop: () => started[index]!.stop(),
      output: () => started[index]!.output(),
    }),
  );
  return shared as unknown as { readonly [Index in keyof Each]: SharedPosthorn };
}

/** A receiver that is closed after the test. */
export async function newReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const receiver = await startReceiver(options);
  onTestFinished(() => receiver.close());
  return receiver;
}

let tenants = 0;
/** A tenant that no other test of the file uses, so that they can share one Posthorn. */
export const newTenant = (): string => {
  tenants += 1;
  return `tenant-${tenants}`;
};

type Api = Pick<TestPosthorn, 'api'>;

/** Expects this status. The failure shows the body. */
export async function expectStatus(answer: Promise<Answer> | Answer, status: number): Promise<Answer> {
  const { status: got, text, ...rest } = await answer;
  expect(got, text).toBe(status);
  return { status: got, text, ...rest };
}

export interface TestEndpoint {
  readonly id: string;
  readonly secret: string;
  readonly tenant: string;
}

export async function createEndpoint(
  posthorn: Api,
  endpoint: { url: string; tenant: string } & Record<string, unknown>,
  options?: CallOptions,
): Promise<TestEndpoint> {
  return (await expectStatus(posthorn.api('POST', '/v1/endpoints', endpoint, options), 201)).body;
}

export interface AcceptedEvent {
  readonly id: string;
  readonly type: string;
  readonly tenant: string;
  readonly created_at: string;
  readonly deliveries: number;
  readonly unmatched_reason: string | null;
  readonly duplicate: boolean;
}

/** `event` as an object, or as the exact text of the body. Resolves when the event is stored. */
export async function publish(
  posthorn: Api,
  event: string | Record<string, unknown>,
  options?: CallOptions,
): Promise<AcceptedEvent> {
  const { body } = await expectStatus(posthorn.api('POST', '/v1/events', event, options), 202);
  return { ...body, ...(await readStored(posthorn, body.id)) };
}

/** With Kafka as the accept log, waits until an accepted event is in PostgreSQL. Returns what was decided then. */
export async function readStored(
  posthorn: Api,
  id: string,
): Promise<Partial<Pick<AcceptedEvent, 'deliveries' | 'unmatched_reason'>>> {
  if (inject('kafkaBackbone') === undefined) return {};
  const { body } = await expectStatus(posthorn.api('GET', `/v1/events/${id}`), 200);
  return { deliveries: body.deliveries, unmatched_reason: body.unmatched_reason };
}

export interface ShownDelivery {
  readonly id: string;
  readonly event_id: string;
  readonly endpoint_id: string;
  readonly status: string;
  readonly reason: string | null;
  readonly attempts: number;
  readonly max_attempts: number;
  readonly next_attempt_at: string | null;
  readonly last_status_code: number | null;
  readonly last_error: string | null;
  readonly waiting_reason: string | null;
  readonly batch_id: string | null;
  readonly debounced_by: string | null;
  readonly created_at: string;
  readonly delivered_at: string | null;
  readonly dead_at: string | null;
}

export async function deliveriesOf(posthorn: Api, eventId: string): Promise<ShownDelivery[]> {
  const answer = await expectStatus(posthorn.api('GET', `/v1/deliveries?event_id=${eventId}&limit=250`), 200);
  return answer.body.data;
}

/** Waits until every delivery of the event has this status. */
export async function untilDeliveries(
  posthorn: Api,
  eventId: string,
  status: string,
  { count = 1, timeoutMs = 10_000 } = {},
): Promise<ShownDelivery[]> {
  let last: ShownDelivery[] = [];
  return eventually(
    `${count} deliveries of ${eventId} are ${status}`,
    async () => {
      last = await deliveriesOf(posthorn, eventId);
      return last.length === count && last.every((delivery) => delivery.status === status) && last;
    },
    { timeoutMs, saw: () => last },
  );
}

export interface ShownAttempt {
  readonly number: number;
  readonly started_at: string;
  readonly duration_ms: number;
  readonly status_code: number | null;
  readonly outcome: string;
  readonly error: { readonly class: string; readonly message: string; readonly hint: string } | null;
  readonly url: string;
  readonly request_headers: Record<string, string>;
  readonly response_headers: Record<string, string> | null;
  readonly response_body: string | null;
  readonly response_truncated: boolean;
  readonly trigger: string;
  readonly batch_id: string | null;
}

export async function attemptsOf(posthorn: Api, deliveryId: string): Promise<ShownAttempt[]> {
  return (await expectStatus(posthorn.api('GET', `/v1/deliveries/${deliveryId}/attempts`), 200)).body.data;
}

/** How often each event arrived. */
export function arrivals(requests: readonly RecordedRequest[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { headers } of requests) {
    const id = headers['webhook-id']!;
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

/** The number of waiting deliveries of all endpoints. */
export const waitingIn = async (posthorn: Api): Promise<number> => {
  const { body } = await posthorn.api('GET', '/v1/endpoints?limit=250');
  return body.data.reduce(
    (sum: number, { health }: { health: { waiting: number } }) => sum + health.waiting,
    0,
  );
};
