import { execFile } from 'node:child_process';
import { mkdir, readdir, rm, statfs, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, type TestContext, test } from 'vitest';
import { query, start, temporaryDirectory } from './testing/support.ts';

const run = promisify(execFile);

test('a start on a disk that is too small fails with disk_full and leaves nothing behind', async (context) => {
  const disk = await smallDisk(context, '20m');
  const dataDir = path.join(disk, 'data');
  await expect(start({ dataDir })).rejects.toMatchObject({
    code: 'disk_full',
    message: expect.stringContaining('no space left'),
  });
  expect((await readdir(dataDir)).sort()).toEqual(['posthorn.lock']);
  await run('mount', ['-o', 'remount,size=200m', disk]);
  expect(await query(await start({ dataDir }), 'select 1 as one')).toEqual([{ one: 1 }]);
});

test('an existing database on a full disk fails with disk_full, and opens with all its data when there is space again', async (context) => {
  const disk = await smallDisk(context, '200m');
  const dataDir = path.join(disk, 'data');
  const first = await start({ dataDir });
  await query(first, 'create table kept as select 1 as one');
  await first.stop();
  const { bavail, bsize } = await statfs(disk);
  const filler = path.join(disk, 'filler');
  await writeFile(filler, Buffer.alloc(bavail * bsize));
  await expect(start({ dataDir })).rejects.toMatchObject({ code: 'disk_full' });
  await rm(filler);
  expect(await query(await start({ dataDir }), 'select * from kept')).toEqual([{ one: 1 }]);
});

async function smallDisk(context: TestContext, size: string): Promise<string> {
  if (process.getuid?.() !== 0) context.skip('they mount a small disk, which needs root');
  const disk = path.join(await temporaryDirectory(), 'disk');
  await mkdir(disk);
  await run('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=755`, 'tmpfs', disk]).catch(() => {
    context.skip('they mount a small disk, which is not allowed here');
  });
  onTestFinished(async () => {
    await run('umount', [disk]);
  });
  return disk;
}
