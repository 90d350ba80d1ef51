import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { expect, test } from 'vitest';
import {
  filledDataDirs,
  forkPosthorn,
  isAlive,
  newDataDir,
  postmasterPid,
  query,
  start,
  startProcess,
} from './testing/support.ts';

const usedDataDir = filledDataDirs();

test('a second Posthorn fails with an error that names the process that holds the directory', async () => {
  const dataDir = await usedDataDir();
  const first = await startProcess({ dataDir });
  const server = await postmasterPid(dataDir);
  await expect(start({ dataDir })).rejects.toMatchObject({
    name: 'EmbeddedPostgresError',
    code: 'held',
    message: expect.stringMatching(
      `${dataDir} is in use by another Posthorn: process ${first.child.pid} on .*, since 2`,
    ),
    hint: expect.stringContaining(`kill ${first.child.pid}`),
  });
  expect(isAlive(server), 'the first one keeps running').toBe(true);
  expect(await query(first, 'select 1 as one')).toEqual([{ one: 1 }]);

  await first.end('stop');
  await start({ dataDir });
  await expect(start({ dataDir })).rejects.toMatchObject({
    code: 'held',
    message: expect.stringContaining('this same process'),
  });
});

test('if several start at the same time on a new directory, exactly one succeeds', async () => {
  const dataDir = await newDataDir();
  await mkdir(dataDir);
  const starters = Array.from({ length: 4 }, () => forkPosthorn({ dataDir }));
  const outcomes = await Promise.all(starters.map(async (child) => (await once(child, 'message'))[0]));
  expect(outcomes.filter((outcome) => outcome.started)).toHaveLength(1);
  expect(outcomes.filter((outcome) => outcome.failed).map((outcome) => outcome.failed.code)).toEqual([
    'held',
    'held',
    'held',
  ]);
  const winner = starters[outcomes.findIndex((outcome) => outcome.started)]!;
  const ended = once(winner, 'exit');
  winner.send('stop');
  await ended;
});
