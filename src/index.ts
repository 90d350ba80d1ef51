/**
 * Posthorn inside another Node program.
 *
 * @example
 * import { createPosthorn } from 'posthorn';
 *
 * const posthorn = await createPosthorn({ databaseUrl, adminKey, encryptionKey, port: 8787 });
 * const { id } = await posthorn.publish({ type: 'order.created', tenant: 'acme', data: order });
 * await posthorn.stop();
 */
import { startApp } from './app.ts';
import { ensureKeys, loadConfig, type Mode } from './config/index.ts';
import { publicId } from './domain/ids.ts';
import { publish as publishInTransaction, type Transaction } from './outbox/index.ts';
import { type NewEvent, toEventJson } from './publish.ts';
import { createLog, type Log } from './telemetry/log.ts';

export { ConfigError } from './config/index.ts';
export type { Converter, Converters, PosthornConfig } from './convert/index.ts';
export { type FieldError, Problem } from './domain/problem.ts';
export type { Transaction } from './outbox/index.ts';
export type { NewEvent } from './publish.ts';
export type { Log } from './telemetry/log.ts';

export interface PosthornOptions {
  /** `dev` generates keys, keeps them in `dataDir`, and allows receivers on this machine. Default: `serve`. */
  readonly mode?: Mode;
  /** PostgreSQL to use. Absent: an embedded one, with its data in `dataDir`. */
  readonly databaseUrl?: string;
  readonly dataDir?: string;
  readonly adminKey?: string;
  /** 32 bytes, base64. */
  readonly encryptionKey?: string;
  /** The port of the API and the console. 0: any free port. */
  readonly port?: number;
  readonly host?: string;
  readonly role?: 'all' | 'api' | 'worker';
  /** Other settings, by the names of their variables (see docs/configuration.md). The environment is not read. */
  readonly settings?: Readonly<Record<string, string>>;
  /** A pino logger. Absent: warnings and worse, to stderr. */
  readonly log?: Log;
}

export interface PublishedEvent {
  /** `evt_…` */
  readonly id: string;
  readonly type: string;
  readonly tenant: string;
  readonly createdAt: Date;
  readonly deliveries: number;
  /** True if the idempotency key was already used for the same event. The other fields then describe that event. */
  readonly duplicate: boolean;
}

export interface Posthorn {
  readonly url: string;
  readonly adminKey: string;
  /** Resolves when the event and its deliveries are durable. Throws a `Problem` that names what is wrong with it. */
  publish(event: NewEvent): Promise<PublishedEvent>;
  /** Publishes the event if, and only if, the caller's transaction commits. The transaction must be on Posthorn's database. */
  publish(event: NewEvent, options: { readonly tx: Transaction }): Promise<{ readonly id: string }>;
  /** Finishes deliveries in flight or hands them over, and stops. Can be called twice. */
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function createPosthorn(options: PosthornOptions = {}): Promise<Posthorn> {
  const loaded = loadConfig({ mode: options.mode ?? 'serve', env: variablesOf(options) });
  const log = options.log ?? createLog(loaded);
  const config = await ensureKeys(loaded, { notice: (message) => log.info(message) });
  const database = config.databaseUrl ?? (await startDatabase(config.dataDir, log));
  const databaseUrl = typeof database === 'string' ? database : database.connectionString;
  const stopDatabase = async (): Promise<void> => {
    if (typeof database !== 'string') await database.stop();
  };
  const stopAll = async (): Promise<void> => {
    try {
      await app.stop();
    } finally {
      await stopDatabase();
    }
  };

  const app = await startApp({ config: { ...config, databaseUrl }, log }).catch(async (error) => {
    await stopDatabase();
    throw error;
  });
  let stopping: Promise<void> | null = null;
  const stop = (): Promise<void> => {
    stopping ??= stopAll();
    return stopping;
  };

  function publish(event: NewEvent): Promise<PublishedEvent>;
  function publish(event: NewEvent, given: { readonly tx: Transaction }): Promise<{ readonly id: string }>;
  async function publish(event: NewEvent, given?: { readonly tx: Transaction }) {
    if (given !== undefined) return { id: await publishInTransaction(event, given) };
    const { id, createdAt, ...answer } = await app.publish(toEventJson(event));
    return { id: publicId('evt', id), createdAt: new Date(createdAt), ...answer };
  }
  return { url: app.url, adminKey: config.adminKey, publish, stop, [Symbol.asyncDispose]: stop };
}

function variablesOf(options: PosthornOptions): Record<string, string | undefined> {
  return {
    POSTHORN_LOG_LEVEL: 'warn',
    // The application itself decides when its load balancers have noticed the stop.
    POSTHORN_LAME_DUCK_MS: '0',
    ...options.settings,
    DATABASE_URL: options.databaseUrl,
    POSTHORN_DATA_DIR: options.dataDir,
    POSTHORN_ADMIN_KEY: options.adminKey,
    POSTHORN_ENCRYPTION_KEY: options.encryptionKey,
    PORT: options.port?.toString(),
    HOST: options.host,
    POSTHORN_ROLE: options.role,
  };
}

async function startDatabase(dataDir: string, log: Log) {
  const { startEmbeddedPostgres } = await import('./postgres/embedded/index.ts');
  return startEmbeddedPostgres({
    dataDir,
    log: (line) => log.info({ part: 'embedded PostgreSQL' }, line),
  });
}
