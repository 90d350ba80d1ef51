/**
 * In `dev` the admin key and the encryption key need not be set: the first start generates them and stores them beside
 * the embedded database. `serve` never generates keys, because several machines must share them.
 *
 * Without the encryption key the stored secrets are lost. So no new one is generated while there is a database whose
 * secrets need the old one, and a damaged file is an error.
 */
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { Invalid, type Setting } from './kinds.ts';
import { type Config, ConfigError, type ConfigWithKeys } from './load.ts';
import { exists, makePrivateDirectory, tightenMode, writeOnce } from './private-files.ts';
import { settings } from './settings.ts';

export interface KeyNotices {
  /** Called with what the user should know: a key was generated, or a key file was made private. */
  notice(message: string): void;
}

export async function ensureKeys(config: Config, { notice }: KeyNotices): Promise<ConfigWithKeys> {
  const { adminKey, encryptionKey } = config;
  if (adminKey !== null && encryptionKey !== null) return { ...config, adminKey, encryptionKey };
  if (config.mode === 'serve') throw missingKeys(config);

  const dataDir = path.resolve(config.dataDir);
  await makePrivateDirectory(dataDir).catch((error) => Promise.reject(notWritable(dataDir, error)));
  const keys = {
    adminKey: adminKey ?? (await readOrGenerateKey(adminKeyFile(dataDir), notice)),
    encryptionKey: encryptionKey ?? (await readOrGenerateKey(encryptionKeyFile(dataDir), notice)),
  };
  return Object.freeze({ ...config, ...keys });
}

function missingKeys({ adminKey, encryptionKey }: Config): ConfigError {
  const problems = [];
  if (adminKey === null) {
    problems.push({
      name: 'POSTHORN_ADMIN_KEY',
      message:
        'POSTHORN_ADMIN_KEY is not set; `posthorn serve` needs it. Generate one with: echo "phk_$(openssl rand -hex 32)"',
    });
  }
  if (encryptionKey === null) {
    problems.push({
      name: 'POSTHORN_ENCRYPTION_KEY',
      message:
        'POSTHORN_ENCRYPTION_KEY is not set; `posthorn serve` needs it. Generate one with: openssl rand -base64 32 ' +
        '(the same for every process on this database, and keep a copy: without it the stored secrets cannot be read)',
    });
  }
  return new ConfigError(problems);
}

interface KeyFile<T> {
  readonly file: string;
  readonly variable: string;
  readonly setting: Setting<T | null>;
  generate(): string;
  /** Returns why no new key may be generated although the file is missing, or null. */
  refusalToGenerate(): Promise<string | null>;
}

export function newAdminKey(): string {
  return `phk_${randomBytes(32).toString('base64url')}`;
}

function adminKeyFile(dataDir: string): KeyFile<string> {
  return {
    file: path.join(dataDir, 'admin-key'),
    variable: 'POSTHORN_ADMIN_KEY',
    setting: settings.adminKey,
    generate: newAdminKey,
    // Nothing depends on a lost admin key, so a new one can replace it.
    refusalToGenerate: async () => null,
  };
}

function encryptionKeyFile(dataDir: string): KeyFile<Buffer> {
  const file = path.join(dataDir, 'encryption-key');
  return {
    file,
    variable: 'POSTHORN_ENCRYPTION_KEY',
    setting: settings.encryptionKey,
    generate: () => randomBytes(32).toString('base64'),
    refusalToGenerate: async () =>
      (await hasEmbeddedDatabase(dataDir))
        ? `${file} is missing, but ${dataDir} holds a database whose secrets only that key can read. ` +
          'Restore the file, or set POSTHORN_ENCRYPTION_KEY to the key. ' +
          'To start again with an empty database, delete the directory.'
        : null,
  };
}

/** `relocated` is a link to a database elsewhere: PostgreSQL's user could not enter this directory. */
async function hasEmbeddedDatabase(dataDir: string): Promise<boolean> {
  return (await exists(path.join(dataDir, 'postgres'))) || (await exists(path.join(dataDir, 'relocated')));
}

async function readOrGenerateKey<T>(key: KeyFile<T>, notice: (message: string) => void): Promise<T> {
  const stored = await readKey(key, notice);
  if (stored !== null) return stored;
  const refusal = await key.refusalToGenerate();
  if (refusal !== null) throw new ConfigError([{ name: key.variable, message: refusal }]);
  const isNew = await writeOnce(key.file, `${key.generate()}\n`).catch((error) =>
    Promise.reject(notWritable(path.dirname(key.file), error)),
  );
  if (isNew) notice(`Generated a new key and stored it in ${key.file}`);
  // Use the key on the disk: another process may have written it first.
  const written = await readKey(key, notice);
  if (written === null) throw damaged(key, 'disappeared while it was being written');
  return written;
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
    throw damaged(key, `is damaged: it should contain ${key.setting.allowed}`);
  }
  if (await tightenMode(key.file)) notice(`Other users could read ${key.file}; its mode is now 0600`);
  return value;
}

function damaged(key: KeyFile<unknown>, what: string): ConfigError {
  const message = `${key.file} ${what}. Restore the file from a copy, or set ${key.variable} to the key.`;
  return new ConfigError([{ name: key.variable, message }]);
}

function notWritable(directory: string, error: NodeJS.ErrnoException): ConfigError {
  const message =
    `POSTHORN_DATA_DIR: ${directory} cannot be written to (${error.code ?? error.message}). ` +
    'Set it to a directory that this user may write to.';
  return new ConfigError([{ name: 'POSTHORN_DATA_DIR', message }]);
}
