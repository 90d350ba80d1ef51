import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { checkArchive } from './check-archive.ts';

const check = (archiveUrl: string | null) => checkArchive({ archiveUrl, archivePathStyle: null });

test('LIF-2: doctor checks the archive, if there is one', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'posthorn-doctor-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  expect(await check(null)).toBeNull();
  expect(await check(pathToFileURL(folder).href)).toMatchObject({ check: 'Archive', state: 'ok' });
  expect(await check('file:///posthorn/missing')).toMatchObject({
    state: 'problem',
    detail: expect.stringContaining('does not exist'),
  });
  expect(await check('file://host/folder')).toMatchObject({ state: 'problem' });
});
