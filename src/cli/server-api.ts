/** Calls the API of a running server, for commands. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { type Config, ConfigError, loadConfig } from '../config/index.ts';
import type { Arguments } from './arguments.ts';
import { UsageError } from './usage-error.ts';

const REQUEST_TIMEOUT_MS = 30_000;

export class ServerApi {
  readonly #config: Config;
  readonly #key: string;

  private constructor(config: Config, key: string) {
    this.#config = config;
    this.#key = key;
  }

  /** Uses the server at POSTHORN_PUBLIC_URL, with POSTHORN_ADMIN_KEY or the admin key that `dev` has generated. */
  static async open(args: Arguments): Promise<ServerApi> {
    const mode = (args.flags['database-url'] ?? process.env.DATABASE_URL ?? '') === '' ? 'dev' : 'serve';
    return ServerApi.of(loadConfig({ mode, env: process.env, flags: args.flags }));
  }

  static async of(config: Config): Promise<ServerApi> {
    return new ServerApi(config, await findAdminKey(config));
  }

  async call(method: string, address: string, body?: unknown): Promise<Response> {
    const { href } = new URL(address, this.#config.publicUrl);
    const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    try {
      return await fetch(href, {
        method,
        headers: {
          authorization: `Bearer ${this.#key}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        signal,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    } catch (error) {
      const { message, cause } = error as Error;
      const reason = cause instanceof Error && cause.message !== '' ? cause.message : message;
      throw new UsageError(
        `No Posthorn answers at ${this.#config.publicUrl} (${reason}). Start it, or set POSTHORN_PUBLIC_URL to its address.`,
      );
    }
  }

  /** Returns the body of the answer. Throws if the answer is a problem. */
  async get<T>(address: string): Promise<T> {
    const answer = await this.call('GET', address);
    if (!answer.ok) throw new UsageError(`GET ${address}: ${await detailOf(answer)}`);
    return (await answer.json()) as T;
  }

  /** All objects of a list. */
  async list<T>(address: string): Promise<T[]> {
    const found: T[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query: string = cursor === '' ? '' : `&cursor=${cursor}`;
      const page: { data: T[]; next_cursor: string | null } = await this.get(`${address}?limit=250${query}`);
      found.push(...page.data);
      cursor = page.next_cursor;
    }
    return found;
  }
}

async function findAdminKey({ adminKey, dataDir }: Config): Promise<string> {
  if (adminKey !== null) return adminKey;
  try {
    return (await readFile(path.join(dataDir, 'admin-key'), 'utf8')).trim();
  } catch {
    const name = 'POSTHORN_ADMIN_KEY';
    throw new ConfigError([{ name, message: `${name} is not set, and ${dataDir} has no generated key.` }]);
  }
}

/** What a problem says. */
export async function detailOf(answer: Response): Promise<string> {
  const problem = (await answer.json().catch(() => null)) as { readonly detail?: string } | null;
  return `${problem?.detail ?? answer.statusText} (${answer.status})`;
}
