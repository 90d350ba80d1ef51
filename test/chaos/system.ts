/** The system under test: PostgreSQL, workers and API servers as real processes, and the cables between them. */

import { randomBytes } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { openDirectory } from '../../scripts/open-directory.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/postgres/embedded/index.ts';
import { freePort } from '../support/free-port.ts';
import type { Brokers } from './brokers.ts';
import { Cable } from './cable.ts';
import { Child, type ChildOptions, type Exit } from './child.ts';
import { DatabaseTime } from './database-clock.ts';
import { Http } from './http.ts';
import { until } from './until.ts';

const SOURCE = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
const JUMPING_CLOCK = new URL('./jumping-clock.ts', import.meta.url).href;

/** Short times, so that a run takes seconds instead of minutes. */
export const TIMES = { heartbeatMs: 100, proofMs: 400, deadAfterMs: 2000, sweepMs: 500 };

/** PostgreSQL, which may be shut down and killed. Queries of the test wait until it is back. */
export class Postgres {
  readonly #server: EmbeddedPostgres;
  readonly #pool: pg.Pool;
  readonly dir: string;
  readonly time: DatabaseTime;
  #restarts: number[] = [];

  private constructor(server: EmbeddedPostgres, dir: string, time: DatabaseTime) {
    this.#server = server;
    this.dir = dir;
    this.time = time;
    this.#pool = new pg.Pool({
      connectionString: server.connectionString,
      max: 3,
      application_name: 'chaos',
    });
    this.#pool.on('error', () => {});
  }

  static async start(): Promise<Postgres> {
    const dir = await openDirectory('posthorn-chaos-');
    const time = await DatabaseTime.create(dir);
    const { environment } = time;
    return new Postgres(await startEmbeddedPostgres({ dataDir: dir, environment }), dir, time);
  }

  get url(): string {
    return this.#server.connectionString;
  }

  get socketPath(): string {
    return join(decodeURIComponent(new URL(this.url).hostname), '.s.PGSQL.5432');
  }

  /** The same database through a TCP port of this machine. */
  urlThrough(port: number): string {
    const url = new URL(this.url);
    return `postgresql://${url.username}:${url.password}@127.0.0.1:${port}${url.pathname}${url.search}`;
  }

  async query<T extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<T[]> {
    const deadline = Date.now() + 20_000;
    for (;;) {
      try {
        return (await this.#pool.query<T>(text, values)).rows;
      } catch (error) {
        const { code } = error as { code?: string };
        if (code !== undefined && /^(22|23|42)/.test(code)) throw error;
        if (Date.now() > deadline) throw error;
        await delay(50);
      }
    }
  }

  /** Runs a statement in a transaction, and keeps its locks until the returned function is called. */
  async lock(text: string): Promise<() => Promise<void>> {
    const client = new pg.Client({ connectionString: this.url, application_name: 'chaos lock' });
    client.on('error', () => {});
    await client.connect();
    await client.query('begin');
    await client.query(text);
    return () => client.end();
  }

  /** Waits until a connection with this name waits for a lock. */
  async untilWaiting(name: string): Promise<void> {
    await until(
      `${name} waits for a lock`,
      async () =>
        (
          await this.query(
            `select from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock'`,
            [name],
          )
        ).length > 0,
      10_000,
    );
  }

  /** The embedded server is restarted automatically, but at most three times per minute. */
  get mayRestart(): boolean {
    return this.#restarts.filter((at) => at > Date.now() - 62_000).length < 3;
  }

  async restartable(): Promise<void> {
    await until('PostgreSQL may be restarted again', () => this.mayRestart, 65_000);
  }

  /** `fast` ends the sessions and writes everything to disk; `immediate` is like a crash, and recovery follows. */
  async restart(how: 'fast' | 'immediate'): Promise<void> {
    const before = await this.#pid();
    this.#restarts.push(Date.now());
    process.kill(before, how === 'fast' ? 'SIGINT' : 'SIGQUIT');
    await until(
      'PostgreSQL is back',
      async () => {
        const pid = await this.#pid().catch(() => before);
        return pid !== before && (await this.#answers());
      },
      30_000,
    );
  }

  async #pid(): Promise<number> {
    const text = await readFile(join(this.#server.dataDir, 'postgres', 'postmaster.pid'), 'utf8');
    return Number(text.split('\n')[0]);
  }

  async #answers(): Promise<boolean> {
    return this.#pool.query('select 1').then(
      () => true,
      () => false,
    );
  }

  async stop(): Promise<void> {
    await this.#pool.end();
    await this.#server.stop();
    await rm(this.dir, { recursive: true, force: true });
  }
}

export type Role = 'worker' | 'api' | 'all';

interface MemberOptions extends ChildOptions {
  readonly role: Role;
  readonly cable: Cable | null;
  readonly http: Http;
  readonly program: string;
  /** Value of POSTHORN_SIBLINGS. Null: it has no siblings. */
  readonly siblings: () => string | null;
}

/** One Posthorn server. */
export class Member extends Child {
  readonly role: Role;
  readonly cable: Cable | null;
  readonly #options: MemberOptions;
  port = 0;

  constructor(options: MemberOptions) {
    super(options);
    this.role = options.role;
    this.cable = options.cable;
    this.#options = options;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get #clockFile(): string {
    return `${this.logFile}.clock`;
  }

  /** Sets its wall clock ahead of the others by this much, or behind if negative. */
  async setClock(aheadMs: number): Promise<void> {
    await writeFile(this.#clockFile, String(aheadMs));
    this.signal('SIGUSR2');
  }

  /** Whether it says that it is ready. */
  isReadyNow(): Promise<boolean> {
    return this.isReady();
  }

  /** Asks this server to create an endpoint. Returns false if it does not answer, or not with success. */
  createEndpoint(key: string, endpoint: object): Promise<boolean> {
    return this.#post('endpoints', key, endpoint);
  }

  /** Publishes an event through this server. Returns false if it does not answer, or not with success. */
  publish(key: string, event: object): Promise<boolean> {
    return this.#post('events', key, event);
  }

  #post(resource: string, key: string, body: object): Promise<boolean> {
    return this.#options.http
      .fetch(`${this.url}/v1/${resource}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(12_000),
      })
      .then(
        (response) => response.ok,
        () => false,
      );
  }

  override async start(): Promise<void> {
    // Keep the port, so that clients find the restarted server.
    if (this.port === 0) this.port = await freePort();
    const siblings = this.#options.siblings();
    this.spawn(['--import', JUMPING_CLOCK, this.#options.program, 'serve', '--role', this.role], {
      PORT: String(this.port),
      ...(siblings !== null && { POSTHORN_SIBLINGS: siblings }),
      CHAOS_CLOCK_FILE: this.#clockFile,
    });
  }

  protected override isReady(): Promise<boolean> {
    return this.#options.http.fetch(`${this.url}/readyz`, { signal: AbortSignal.timeout(2000) }).then(
      (response) => response.ok,
      () => false,
    );
  }
}

export interface SystemOptions {
  readonly carefulAfterCrashes: number;
  readonly members: readonly {
    readonly role: Role;
    readonly cabled: boolean;
    /** Siblings are processes of one node: they route committed deliveries to each other. */
    readonly sibling?: boolean;
  }[];
}

/**
 * Three workers and two API servers; all but one of each have a cable. One worker is another node, which the database
 * notifies.
 */
export const FIVE_MEMBERS: SystemOptions['members'] = [
  { role: 'worker', cabled: true, sibling: true },
  { role: 'worker', cabled: true },
  { role: 'worker', cabled: false, sibling: true },
  { role: 'api', cabled: true, sibling: true },
  { role: 'api', cabled: false, sibling: true },
];

export class System {
  readonly postgres: Postgres;
  /** The file that is started as Posthorn. */
  readonly program: string;
  /** Null: events are stored in PostgreSQL at once. */
  readonly brokers: Brokers | null;
  readonly key = `phk_${randomBytes(24).toString('base64url')}`;
  readonly http = new Http();
  readonly members: Member[] = [];
  /** Processes that ended unexpectedly. */
  readonly exits: Exit[] = [];
  readonly #cables: Cable[] = [];
  #siblingsDirectory: string | null = null;
  #siblingsStarted = 0;
  #turn = 0;

  constructor(postgres: Postgres, program = SOURCE, brokers: Brokers | null = null) {
    this.postgres = postgres;
    this.program = program;
    this.brokers = brokers;
  }

  get workers(): readonly Member[] {
    return this.members.filter(({ role }) => role !== 'api');
  }

  get apis(): readonly Member[] {
    return this.members.filter(({ role }) => role !== 'worker');
  }

  async start({ carefulAfterCrashes, members }: SystemOptions): Promise<void> {
    const env = {
      NODE_NO_WARNINGS: '1',
      POSTHORN_ADMIN_KEY: this.key,
      POSTHORN_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
      POSTHORN_EGRESS_ALLOW: '127.0.0.0/8',
      POSTHORN_EGRESS_HTTPS: 'except-loopback',
      POSTHORN_LOG_LEVEL: process.env.CHAOS_LOG_LEVEL ?? 'warn',
      POSTHORN_LOG_FORMAT: 'json',
      POSTHORN_HEARTBEAT_MS: `${TIMES.heartbeatMs}`,
      POSTHORN_PROOF_MS: `${TIMES.proofMs}`,
      POSTHORN_DEAD_AFTER_MS: `${TIMES.deadAfterMs}`,
      POSTHORN_SWEEP_MS: `${TIMES.sweepMs}`,
      POSTHORN_DRAIN_MS: '6000',
      POSTHORN_LAME_DUCK_MS: '0',
      POSTHORN_CAREFUL_AFTER_CRASHES: String(carefulAfterCrashes),
      POSTHORN_DATABASE_POOL_SIZE: '4',
      ...this.brokers?.env,
    };
    for (const { role, cabled, sibling = false } of members) {
      const cable = cabled ? await this.addCable(this.postgres) : null;
      const name = `${role}-${this.members.filter((member) => member.role === role).length + 1}`;
      const member = new Member({
        name,
        role,
        cable,
        logFile: join(this.postgres.dir, `${name}.log`),
        http: this.http,
        program: this.program,
        siblings: () => (sibling ? this.#asSibling() : null),
        env: {
          ...env,
          DATABASE_URL: cable === null ? this.postgres.url : this.postgres.urlThrough(cable.port),
        },
        onExit: (exit) => this.exits.push(exit),
      });
      this.members.push(member);
      await member.start();
    }
    await Promise.all(this.members.map((member) => member.ready(180_000)));
  }

  /** The value that a supervisor passes to its children: later ones have higher numbers. */
  #asSibling(): string {
    this.#siblingsDirectory ??= mkdtempSync(join(tmpdir(), 'posthorn-chaos-'));
    this.#siblingsStarted += 1;
    return `${this.#siblingsStarted}:${this.#siblingsDirectory}`;
  }

  /** Adds a cable. It is closed with the system. */
  async addCable(postgres: Postgres): Promise<Cable> {
    const cable = new Cable(postgres.socketPath);
    await cable.listen();
    this.#cables.push(cable);
    return cable;
  }

  /** Returns true if all accepted events are in PostgreSQL. */
  async hasStoredAll(): Promise<boolean> {
    return this.brokers === null || this.brokers.isDrained(this.postgres);
  }

  /** Calls the API of any server and retries. For calls of the test itself that may be repeated. */
  async api<T>(method: string, path: string, body?: unknown): Promise<T> {
    const deadline = Date.now() + 30_000;
    for (;;) {
      try {
        return await this.apiOnce<T>(method, path, body);
      } catch (error) {
        if ((error as { final?: true }).final || Date.now() > deadline) throw error;
      }
      await delay(100);
    }
  }

  async apiOnce<T>(method: string, path: string, body?: unknown): Promise<T> {
    this.#turn += 1;
    const { url } = this.apis[this.#turn % this.apis.length]!;
    const response = await this.http.fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.key}`, 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(5000),
    });
    if (response.ok) return (response.status === 204 ? undefined : await response.json()) as T;
    const problem = new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    throw response.status < 500 ? Object.assign(problem, { final: true }) : problem;
  }

  async stop(): Promise<void> {
    for (const member of this.members) member.resume();
    await Promise.all(this.members.map((member) => member.kill()));
    await this.http.close();
    await Promise.all(this.#cables.map((cable) => cable.close()));
    await this.brokers?.stop();
    await this.postgres.stop();
    if (this.#siblingsDirectory !== null) await rm(this.#siblingsDirectory, { recursive: true, force: true });
  }
}
