import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { filledDataDirs, newDataDir, query, start } from './testing/support.ts';

const usedDataDir = filledDataDirs();

/** Kinds of damage, each with a part of the expected message. */
const damages: Record<string, { harm(dataDir: string): Promise<unknown>; says: string | RegExp }> = {
  'PG_VERSION is missing': {
    harm: (dataDir) => rm(path.join(dataDir, 'postgres/PG_VERSION')),
    says: 'PG_VERSION is missing',
  },
  'pg_control is missing': {
    harm: (dataDir) => rm(path.join(dataDir, 'postgres/global/pg_control')),
    says: 'global/pg_control is missing',
  },
  'pg_control is garbage': {
    harm: (dataDir) => writeFile(path.join(dataDir, 'postgres/global/pg_control'), Buffer.alloc(8192, 'x')),
    says: /cannot be opened[\s\S]*incompatible[\s\S]*postgres\.log/,
  },
  'pg_control is cut short': {
    harm: (dataDir) => truncate(path.join(dataDir, 'postgres/global/pg_control'), 10),
    says: /cannot be opened[\s\S]*pg_control[\s\S]*postgres\.log/,
  },
  'the write-ahead log is gone': {
    harm: async (dataDir) => {
      const wal = path.join(dataDir, 'postgres/pg_wal');
      const segments = (await readdir(wal)).filter((name) => /^[0-9A-F]{24}$/.test(name));
      await Promise.all(segments.map((name) => rm(path.join(wal, name))));
    },
    says: /cannot be opened[\s\S]*checkpoint record/,
  },
  'another major version made it': {
    harm: (dataDir) => writeFile(path.join(dataDir, 'postgres/PG_VERSION'), '17\n'),
    says: 'made by PostgreSQL "17", and this is PostgreSQL 18',
  },
  'the cluster is gone, the password is not': {
    harm: (dataDir) => rm(path.join(dataDir, 'postgres'), { recursive: true }),
    says: 'is gone',
  },
  'a file is in its place': {
    harm: async (dataDir) => {
      await rm(path.join(dataDir, 'postgres'), { recursive: true });
      await writeFile(path.join(dataDir, 'postgres'), 'not a directory');
    },
    says: 'not a directory',
  },
  'it was emptied': {
    harm: async (dataDir) => {
      await rm(path.join(dataDir, 'postgres'), { recursive: true });
      await mkdir(path.join(dataDir, 'postgres'));
    },
    says: 'PG_VERSION is missing',
  },
  'the password file is missing': {
    harm: (dataDir) => rm(path.join(dataDir, 'postgres.password')),
    says: 'password file',
  },
  'the password file is of another database': {
    harm: (dataDir) => writeFile(path.join(dataDir, 'postgres.password'), 'of-another-database\n'),
    says: 'does not hold the password',
  },
};

for (const [name, { harm, says }] of Object.entries(damages)) {
  test(`damaged: ${name}`, async () => {
    const dataDir = await usedDataDir();
    await harm(dataDir);
    const before = await listing(dataDir);
    const message = typeof says === 'string' ? expect.stringContaining(says) : expect.stringMatching(says);
    await expect(start({ dataDir })).rejects.toMatchObject({ code: 'damaged', message });
    // Nothing was created in its place, and a second start fails in the same way.
    expect(await listing(dataDir)).toEqual(before);
    await expect(start({ dataDir })).rejects.toMatchObject({ code: 'damaged', message });
  });
}

test('an undamaged copy opens, even if copying changed the mode of its directory', async () => {
  const dataDir = await usedDataDir();
  await promisify(execFile)('chmod', ['0755', path.join(dataDir, 'postgres')]);
  expect(await query(await start({ dataDir }), 'select 1 as one')).toEqual([{ one: 1 }]);
});

test('a data directory that is a file is refused, and the file stays', async () => {
  const dataDir = await newDataDir();
  await writeFile(dataDir, 'a file');
  await expect(start({ dataDir })).rejects.toMatchObject({
    code: 'start_failed',
    message: expect.stringContaining(dataDir),
  });
  expect(await readFile(dataDir, 'utf8')).toBe('a file');
});

/** All file names except the logs and settings that each start writes. */
async function listing(dataDir: string): Promise<string[]> {
  const names = await readdir(dataDir, { recursive: true });
  return names
    .filter((name) => !/postgres\.log|postmaster|posthorn\.conf|pg_stat|pg_internal|pgsql_tmp/.test(name))
    .sort();
}
