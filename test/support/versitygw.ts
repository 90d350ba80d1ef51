/** Starts versitygw, an independent S3 server: from the PATH, or from where scripts/fetch-versitygw.sh puts it. */

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';

const FETCHED = fileURLToPath(new URL('../../node_modules/.cache/versitygw/versitygw', import.meta.url));

function find(): string | null {
  const places = (process.env.PATH ?? '')
    .split(path.delimiter)
    .map((folder) => path.join(folder, 'versitygw'));
  return [FETCHED, ...places].find((place) => existsSync(place)) ?? null;
}

const versitygw = find();

/** For `needs`. */
export const VERSITYGW_MISSING =
  versitygw === null ? 'versitygw is not installed (scripts/fetch-versitygw.sh builds it with Go)' : null;

export interface Versitygw {
  readonly env: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** Starts a server with these buckets on a free port. */
export async function startVersitygw(...buckets: string[]): Promise<Versitygw> {
  const folder = await mkdtemp(path.join(tmpdir(), 'posthorn-versitygw-'));
  for (const bucket of buckets) await mkdir(path.join(folder, 'data', bucket), { recursive: true });
  await mkdir(path.join(folder, 'metadata'));
  const address = `127.0.0.1:${await freePort()}`;
  const [access, secret, region] = ['AKIATEST', 'a/secret+of=tests', 'eu-central-9'];
  const child = spawn(
    versitygw!,
    // Not every file system of a test machine has extended attributes.
    [
      '--port',
      address,
      '--region',
      region,
      '--quiet',
      'posix',
      '--sidecar',
      path.join(folder, 'metadata'),
      path.join(folder, 'data'),
    ],
    { env: { ROOT_ACCESS_KEY: access, ROOT_SECRET_KEY: secret }, stdio: 'ignore' },
  );
  const ended = new Promise((resolve) => child.once('close', resolve));
  await eventually('versitygw answers', () =>
    fetch(`http://${address}/`).then(
      () => true,
      () => false,
    ),
  );
  return {
    env: {
      AWS_ENDPOINT_URL_S3: `http://${address}`,
      AWS_ACCESS_KEY_ID: access,
      AWS_SECRET_ACCESS_KEY: secret,
      AWS_REGION: region,
    },
    async stop() {
      child.kill('SIGTERM');
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
