import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigError, ensureKeys, loadConfig } from './index.ts';

const KEY = Buffer.alloc(32, 7).toString('base64');

let parent: string;
let dataDir: string;
let notices: string[];
const file = (name: string): string => path.join(dataDir, name);
const notice = (message: string): void => void notices.push(message);

beforeEach(async () => {
  parent = await mkdtemp(path.join(tmpdir(), 'posthorn-keys-'));
  dataDir = path.join(parent, 'data');
  notices = [];
});
afterEach(async () => {
  await rm(parent, { recursive: true, force: true });
});

const load = (env: Record<string, string> = {}, mode: 'dev' | 'serve' = 'dev') =>
  ensureKeys(loadConfig({ mode, env: { POSTHORN_DATA_DIR: dataDir, ...env } }), { notice });
const modeOf = async (name: string): Promise<number> => (await stat(file(name))).mode & 0o777;

describe('in dev', () => {
  it('generates both keys once, readable only by their owner, and reads them at the next start', async () => {
    const first = await load();
    expect(first.adminKey).toMatch(/^phk_[A-Za-z0-9_-]{43}$/);
    expect(first.encryptionKey).toHaveLength(32);
    expect(await modeOf('admin-key')).toBe(0o600);
    expect(await modeOf('encryption-key')).toBe(0o600);
    expect(notices).toHaveLength(2);

    const second = await load();
    expect(second.adminKey).toBe(first.adminKey);
    expect(second.encryptionKey).toEqual(first.encryptionKey);
    expect(notices).toHaveLength(2);
    expect((await readdir(dataDir)).toSorted()).toEqual(['admin-key', 'encryption-key']);
  });

  it('gives processes that start at the same time the same keys', async () => {
    const all = await Promise.all(Array.from({ length: 16 }, () => load()));
    expect(new Set(all.map((config) => config.adminKey)).size).toBe(1);
    expect(new Set(all.map((config) => config.encryptionKey.toString('hex'))).size).toBe(1);
    expect((await readdir(dataDir)).toSorted()).toEqual(['admin-key', 'encryption-key']);
  });

  it('creates no file if both keys are set', async () => {
    await load({ POSTHORN_ADMIN_KEY: 'phk_given-by-the-user', POSTHORN_ENCRYPTION_KEY: KEY });
    await expect(stat(dataDir)).rejects.toThrow('ENOENT');
  });

  it('generates only the key that is not set', async () => {
    const config = await load({ POSTHORN_ADMIN_KEY: 'phk_given-by-the-user' });
    expect(config.adminKey).toBe('phk_given-by-the-user');
    expect(await readdir(dataDir)).toEqual(['encryption-key']);
  });

  it('makes a key file private if other users could read it', async () => {
    const { adminKey } = await load();
    await chmod(file('admin-key'), 0o644);
    notices = [];
    expect((await load()).adminKey).toBe(adminKey);
    expect(await modeOf('admin-key')).toBe(0o600);
    expect(notices).toEqual([`Other users could read ${file('admin-key')}; its mode is now 0600`]);
  });

  it.each([
    ['encryption-key', ''],
    ['encryption-key', 'dGhpcyBpcyBub3QgMzIgYnl0ZXM='],
    ['encryption-key', KEY.slice(0, 20)],
    ['admin-key', ''],
    ['admin-key', 'phk_short'],
  ])('refuses a damaged %s (%j) and leaves it alone', async (name, content) => {
    await load();
    await writeFile(file(name), content);
    await expect(load()).rejects.toThrow(ConfigError);
    await expect(load()).rejects.toThrow(/is damaged.*Restore the file from a copy, or set POSTHORN_/);
    expect(await readFile(file(name), 'utf8')).toBe(content);
  });

  it('does not show the damaged content', async () => {
    await load();
    await writeFile(file('encryption-key'), 'almost-my-key');
    await expect(load()).rejects.not.toThrow(/almost-my-key/);
  });

  it('generates no new encryption key if there is a database', async () => {
    await load();
    await rm(file('encryption-key'));
    await mkdir(file('postgres'));
    await expect(load()).rejects.toThrow(/encryption-key is missing, but .* holds a database/);
    await expect(stat(file('encryption-key'))).rejects.toThrow('ENOENT');
    expect((await load({ POSTHORN_ENCRYPTION_KEY: KEY })).encryptionKey).toEqual(Buffer.from(KEY, 'base64'));
  });

  it('generates no new encryption key if a link leads to a database elsewhere', async () => {
    await mkdir(dataDir);
    await symlink('/nowhere/at/all', file('relocated'));
    await expect(load()).rejects.toThrow(/encryption-key is missing/);
  });

  it('generates a new admin key even if there is a database', async () => {
    const { adminKey } = await load();
    await rm(file('admin-key'));
    await mkdir(file('postgres'));
    expect((await load()).adminKey).not.toBe(adminKey);
  });

  it('says what to do if the data directory cannot be created', async () => {
    await writeFile(dataDir, 'a file is in the way');
    await expect(load()).rejects.toThrow(/POSTHORN_DATA_DIR: .* cannot be written to \((EEXIST|ENOTDIR)\)/);
  });
});

describe('in serve', () => {
  it('refuses to start without the keys and names both', async () => {
    await load();
    await expect(load({}, 'serve')).rejects.toMatchObject({
      problems: [
        { name: 'POSTHORN_ADMIN_KEY', message: expect.stringContaining('openssl rand -hex 32') },
        { name: 'POSTHORN_ENCRYPTION_KEY', message: expect.stringContaining('openssl rand -base64 32') },
      ],
    });
    await expect(load({ POSTHORN_ENCRYPTION_KEY: KEY }, 'serve')).rejects.toThrow(/1 problem\)/);
  });

  it('starts with both', async () => {
    const env = { POSTHORN_ADMIN_KEY: 'phk_given-by-the-user', POSTHORN_ENCRYPTION_KEY: KEY };
    expect((await load(env, 'serve')).adminKey).toBe('phk_given-by-the-user');
  });
});
