/** `/readyz` is 200 only if events can be accepted and workers deliver them. */
import { expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { freePort, MAIN, startTestPosthorn, TEST_SETTINGS } from '../support/posthorn.ts';
import { startProcess } from '../support/processes.ts';

async function newDatabase() {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  return database;
}

test('an API server is ready only while workers own the shards', async () => {
  const database = await newDatabase();
  const port = await freePort();
  const api = startProcess([MAIN, 'serve', '--role', 'api'], {
    env: {
      ...TEST_SETTINGS,
      PORT: String(port),
      DATABASE_URL: database.url,
      POSTHORN_READY_NEEDS_WORKERS: 'true',
    },
  });
  onTestFinished(async () => {
    await api.kill('SIGKILL');
  });
  const readiness = async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`, { headers: { connection: 'close' } });
    return { code: answer.status, ...((await answer.json()) as { detail?: string }) };
  };
  const notReady = { code: 503, detail: 'No living worker owns a shard: nothing is delivered.' };
  await eventually('it listens', () => api.stdout().includes('is running'), { saw: api.output });
  expect(await readiness()).toMatchObject(notReady);
  const worker = await startTestPosthorn({ database });
  expect(await readiness()).toMatchObject({ code: 200 });
  await worker.kill('SIGKILL');
  await eventually('it notices that no worker delivers', async () => (await readiness()).code === 503, {
    timeoutMs: 30_000,
  });
  expect(await readiness()).toMatchObject(notReady);
  await database.query("delete from posthorn.partitions where parent = 'events'");
  expect(await readiness()).toMatchObject({
    code: 503,
    detail: 'There is no partition for events of the present time.',
  });
});

test('with POSTHORN_READY_NEEDS_WORKERS=false, an API server is ready without workers', async () => {
  const database = await newDatabase();
  const api = await startTestPosthorn({
    database,
    args: ['--role', 'api'],
    env: { POSTHORN_READY_NEEDS_WORKERS: 'false' },
  });
  expect((await api.api('GET', '/readyz')).status).toBe(200);
  await api.stop();
});
