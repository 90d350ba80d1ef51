/** Calls the API of a running server with the admin key. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { type Config, ConfigError } from '../config/index.ts';
import { UsageError } from './usage-error.ts';

const REQUEST_TIMEOUT_MS = 30_000;

/** Throws a `UsageError` if no server answers. */
export async function callServer(
  config: Config,
  method: 'GET' | 'POST',
  route: string,
  body?: object,
): Promise<Response> {
  const { href } = new URL(route, config.publicUrl);
  const headers = {
    authorization: `Bearer ${await findAdminKey(config)}`,
    ...(body !== undefined && { 'content-type': 'application/json' }),
  };
  const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
  try {
    return await fetch(href, {
      method,
      headers,
      signal,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  } catch (error) {
    const { message, cause } = error as Error;
    const reason = cause instanceof Error && cause.message !== '' ? cause.message : message;
    throw new UsageError(
      `No Posthorn answers at ${config.publicUrl} (${reason}). Start it, or set POSTHORN_PUBLIC_URL to its address.`,
    );
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
