/**
 * In `dev` the admin key and the encryption key need not be given: they are made once, kept beside the embedded
 * database, and read again at every later start. `serve` never makes keys up: several machines have to share them.
 *
 * The encryption key is worth as much as what it encrypts. It is never made anew while there is a database whose
 * secrets only the old one can read, and a damaged file is an error, not a reason for a new key.
 */
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { Invalid, type Setting } from './kinds.ts';
import { type Config, ConfigError, type ConfigWithKeys } from './load.ts';
import { exists, makePrivateDirectory, tightenMode, writeOnce } from './private-files.ts';
import { settings } from './settings.ts';

export interface KeyNotices {
  /** Something the user should see: a key was made, permissions were tightened. */
  notice(message: string): void;
}

export async function ensureKeys(config: Config, { notice }: KeyNotices): Promise<ConfigWithKeys> {
  const { adminKey, encryptionKey } = config;
  if (adminKey !== null && encryptionKey !== null) return { ...config, adminKey, encryptionKey };
  if (config.mode === 'serve') throw missingKeys(config);

  const dataDir = path.resolve(config.dataDir);
  await makePrivateDirectory(dataDir).catch((error) => Promise.reject(notWritable(dataDir, error)));
  const keys = {
    adminKey: adminKey ?? (await keepKey(adminKeyFile(dataDir), notice)),
    encryptionKey: encryptionKey ?? (await keepKey(encryptionKeyFile(dataDir), notice)),
  };
  return Object.freeze({ ...config, ...keys });
}

function missingKeys({ adminKey, encryptionKey }: Config): ConfigError {
  const problems = [];
  if (adminKey === null) {
    problems.push({
      name: 'POSTHORN_ADMIN_KEY',
      message:
        'POSTHORN_ADMIN_KEY is not set; `posthorn serve` needs it. Make one with: echo "phk_$(openssl rand -hex 32)"',
    });
  }
  if (encryptionKey === null) {
    problems.push({
      name: 'POSTHORN_ENCRYPTION_KEY',
      message:
        'POSTHORN_ENCRYPTION_KEY is not set; `posthorn serve` needs it. Make one with: openssl rand -base64 32 ' +
        '(the same for every process on this database, and keep a copy: without it the stored secrets cannot be read)',
    });
  }
  return new ConfigError(problems);
}

interface KeyFile<T> {
  readonly file: string;
  readonly variable: string;
  readonly setting: Setting<T | null>;
  make(): string;
  /** Why a new one must not be made although the file is absent, or null. */
  mustNotMake(): Promise<string | null>;
}

export function newAdminKey(): string {
  return `phk_${randomBytes(32).toString('base64url')}`;
}

function adminKeyFile(dataDir: string): KeyFile<string> {
  return {
    file: path.join(dataDir, 'admin-key'),
    variable: 'POSTHORN_ADMIN_KEY',
    setting: settings.adminKey,
    make: newAdminKey,
    // A lost admin key opens nothing and locks nothing away: the new one takes its place.
    mustNotMake: async () => null,
  };
}

function encryptionKeyFile(dataDir: string): KeyFile<Buffer> {
  const file = path.join(dataDir, 'encryption-key');
  return {
    file,
    variable: 'POSTHORN_ENCRYPTION_KEY',
    setting: settings.encryptionKey,
    make: () => randomBytes(32).toString('base64'),
    mustNotMake: async () =>
      (await hasEmbeddedDatabase(dataDir))
        ? `${file} is missing, but ${dataDir} holds a database whose secrets only that key can read. ` +
          'Bring the file back, or set POSTHORN_ENCRYPTION_KEY to the key. ' +
          'To begin again with an empty database, delete the directory.'
        : null,
  };
}

/** `relocated` leads to a database that lies elsewhere because PostgreSQL's user could not enter here. */
async function hasEmbeddedDatabase(dataDir: string): Promise<boolean> {
  return (await exists(path.join(dataDir, 'postgres'))) || (await exists(path.join(dataDir, 'relocated')));
}

async function keepKey<T>(key: KeyFile<T>, notice: (message: string) => void): Promise<T> {
  const kept = await readKey(key, notice);
  if (kept !== null) return kept;
  const refusal = await key.mustNotMake();
  if (refusal !== null) throw new ConfigError([{ name: key.variable, message: refusal }]);
  const isNew = await writeOnce(key.file, `${key.make()}\n`).catch((error) =>
    Promise.reject(notWritable(path.dirname(key.file), error)),
  );
  if (isNew) notice(`Made a new key and kept it in ${key.file}`);
  // What counts is what is on the disk: another process may have been first.
  const made = await readKey(key, notice);
  if (made === null) throw damaged(key, 'vanished while it was being written');
  return made;
}

async function readKey<T>(key: KeyFile<T>, notice: (message: string) => void): Promise<T | null> {
  let content: string;
  try {
    content = (await readFile(key.file, 'utf8')).trim();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT') return null;
    throw damaged(key, `cannot be read (${code})`);
  }
  const value = key.setting.read(content);
  if (value instanceof Invalid || value === null) {
    throw damaged(key, `is damaged: it should hold ${key.setting.allowed}`);
  }
  if (await tightenMode(key.file)) notice(`Others could read ${key.file}; its mode is now 0600`);
  return value;
}

function damaged(key: KeyFile<unknown>, what: string): ConfigError {
  const message = `${key.file} ${what}. Restore the file from a copy, or set ${key.variable} to the key.`;
  return new ConfigError([{ name: key.variable, message }]);
}

function notWritable(directory: string, error: NodeJS.ErrnoException): ConfigError {
  const message =
    `POSTHORN_DATA_DIR: ${directory} cannot be written to (${error.code ?? error.message}). ` +
    'Name a directory that this user may write to.';
  return new ConfigError([{ name: 'POSTHORN_DATA_DIR', message }]);
}
