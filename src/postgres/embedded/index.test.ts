import { once } from 'node:events';
import { readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { NOT_LINUX, needs } from '../../../test/support/needs.ts';
import {
  filledDataDirs,
  isAlive,
  newDataDir,
  postmasterPid,
  query,
  start,
  startProcess,
  temporaryDirectory,
  until,
} from './testing/support.ts';

const usedDataDir = filledDataDirs();

describe('a new data directory', () => {
  test('becomes a database that pg can use, with durable settings', async () => {
    const dataDir = await newDataDir();
    const server = await start({ dataDir });
    const [row] = await query(
      server,
      `select current_database() as database, current_user as user, pg_encoding_to_char(encoding) as encoding,
              datlocale as locale, current_setting('fsync') as fsync, current_setting('full_page_writes') as pages,
              current_setting('synchronous_commit') as commit, current_setting('wal_level') as wal,
              current_setting('server_version_num')::int / 10000 as major, current_setting('data_checksums') as checksums
       from pg_database where datname = current_database()`,
    );
    expect(row).toEqual({
      database: 'posthorn',
      user: 'posthorn',
      encoding: 'UTF8',
      locale: 'C.UTF-8',
      fsync: 'on',
      pages: 'on',
      commit: 'on',
      wal: 'logical',
      major: 18,
      checksums: 'on',
    });
    expect(server.dataDir).toBe(dataDir);
    expect(server.lines).toEqual([`Created a PostgreSQL 18.4 database in ${dataDir}`]);
  });

  test('has a password, a log and a lock file that only the owner can read', async () => {
    const dataDir = await newDataDir();
    const server = await start({ dataDir });
    for (const file of ['postgres.password', 'postgres.log', 'posthorn.lock']) {
      expect((await stat(path.join(dataDir, file))).mode & 0o777, file).toBe(0o600);
    }
    expect((await stat(path.join(dataDir, 'socket'))).mode & 0o777).toBe(0o700);
    const password = (await readFile(path.join(dataDir, 'postgres.password'), 'utf8')).trim();
    expect(Buffer.from(password, 'base64url').length).toBeGreaterThanOrEqual(16);
    expect(new URL(server.connectionString).password).toBe(password);
  });
});

test('a login without the password fails, and nothing listens on the network', async () => {
  const dataDir = await usedDataDir();
  const server = await start({ dataDir });
  for (const [user, password] of [
    ['posthorn', 'wrong'],
    ['posthorn', ''],
    ['postgres', 'postgres'],
  ] as const) {
    const client = new pg.Client({
      host: path.join(dataDir, 'socket'),
      port: 5432,
      user,
      password,
      database: 'posthorn',
    });
    client.on('error', () => {});
    await expect(client.connect(), `${user}:${password}`).rejects.toThrow(/password/);
    await client.end().catch(() => {});
  }
  expect(await query(server, 'show listen_addresses')).toEqual([{ listen_addresses: '' }]);
  expect(await query(server, `select distinct auth_method from pg_hba_file_rules`)).toEqual([
    { auth_method: 'scram-sha-256' },
  ]);
  if (process.platform === 'linux')
    expect(await listeningTcpSockets(await postmasterPid(dataDir))).toEqual([]);
});

test('a restart keeps the data, and stop() may be called several times, also concurrently', async () => {
  const dataDir = await newDataDir();
  const first = await start({ dataDir });
  await query(first, `create table kept as select 'still here' as text`);
  const pid = await postmasterPid(dataDir);
  await Promise.all([first.stop(), first.stop()]);
  await first.stop();
  expect(isAlive(pid)).toBe(false);
  expect((await readdir(dataDir)).sort()).toEqual([
    'postgres',
    'postgres.log',
    'postgres.password',
    'posthorn.lock',
  ]);

  const second = await start({ dataDir, settings: { work_mem: '5MB' } });
  expect(await query(second, 'select * from kept')).toEqual([{ text: 'still here' }]);
  expect(await query(second, 'show work_mem')).toEqual([{ work_mem: '5MB' }]);
  expect(second.connectionString).toBe(first.connectionString);
});

test('a path too long for a socket, with spaces and quotes in it, works', async () => {
  const dataDir = path.join(await temporaryDirectory(), `it's "a" very ${'long '.repeat(20)}path`);
  const server = await start({ dataDir });
  expect(await query(server, 'select 1 as one')).toEqual([{ one: 1 }]);
  const socket = await readlink(path.join(dataDir, 'socket'));
  expect((await stat(socket)).mode & 0o777).toBe(0o700);
  await server.stop();
  await expect(stat(socket)).rejects.toThrow('ENOENT');
});

test('a killed server is restarted and loses nothing that was committed', async () => {
  const dataDir = await usedDataDir();
  const server = await start({ dataDir });
  const pid = await postmasterPid(dataDir);
  process.kill(pid, 'SIGKILL');
  await until(
    () =>
      query(server, 'select * from kept').then(
        (rows) => rows.length === 1,
        () => false,
      ),
    // Recovery flushes every file to the disk, which may be slow.
    60_000,
  );
  expect(server.lines).toContain('PostgreSQL ended unexpectedly (signal SIGKILL); restarting it');
  expect(await postmasterPid(dataDir)).not.toBe(pid);
});

test("the error of a failed start quotes PostgreSQL's message and names its log", async () => {
  const dataDir = await usedDataDir();
  await expect(start({ dataDir, settings: { no_such_setting: '1' } })).rejects.toMatchObject({
    code: 'start_failed',
    message: expect.stringMatching(/no_such_setting[\s\S]*postgres\.log/),
  });
  await start({ dataDir }); // the failed start released everything
});

test('a large log is rotated at the start', async () => {
  const dataDir = await usedDataDir();
  const log = path.join(dataDir, 'postgres.log');
  await writeFile(log, Buffer.alloc(11 * 1024 * 1024, 'x'));
  await start({ dataDir });
  expect((await stat(log)).size).toBeLessThan(100_000);
  expect((await stat(`${log}.1`)).size).toBe(11 * 1024 * 1024);
});

test('the server neither keeps the Posthorn process alive nor outlives one that exits without stopping it', async () => {
  for (const how of ['detach', 'exit'] as const) {
    const posthorn = await startProcess({ dataDir: await usedDataDir() });
    const pid = await postmasterPid(posthorn.dataDir);
    expect(await posthorn.end(how)).toBe(0);
    await until(() => !isAlive(pid));
  }
});

test('Ctrl-C in the terminal does not reach the server', needs(NOT_LINUX), async () => {
  const posthorn = await startProcess({ dataDir: await usedDataDir() });
  const pid = await postmasterPid(posthorn.dataDir);
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]!.split(' ');
  expect(Number(fields[3]), 'its own session').toBe(pid);
  const ended = once(posthorn.child, 'exit');
  posthorn.child.send('stop');
  await ended;
  expect(isAlive(pid)).toBe(false);
});

async function listeningTcpSockets(pid: number): Promise<string[]> {
  const own = new Set<string>();
  for (const fd of await readdir(`/proc/${pid}/fd`)) {
    const target = await readlink(`/proc/${pid}/fd/${fd}`).catch(() => '');
    const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
    if (inode) own.add(inode);
  }
  expect(own.size, 'the list contains at least the Unix socket').toBeGreaterThan(0);
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/${pid}/net/${name}`, 'utf8').catch(() => '')),
  );
  return tables
    .flatMap((table) => table.split('\n'))
    .filter((line) => own.has(line.trim().split(/\s+/)[9] ?? ''));
}
