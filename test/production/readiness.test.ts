/** `/readyz` is 200 only if events can be accepted and workers deliver them. */

import { expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { lockRows } from '../support/lock-rows.ts';
import {
  createEndpoint,
  MAIN,
  newReceiver,
  publish,
  startTestPosthorn,
  TEST_SETTINGS,
} from '../support/posthorn.ts';
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

test('a server is not ready while its worker renews its lease but can record no results, and its log says so', async () => {
  const database = await newDatabase();
  const posthorn = await startTestPosthorn({
    database,
    env: {
      POSTHORN_READY_NEEDS_WORKERS: 'true',
      POSTHORN_HEARTBEAT_MS: '50',
      POSTHORN_PROOF_MS: '200',
      POSTHORN_DEAD_AFTER_MS: '500',
    },
  });
  onTestFinished(async () => {
    await posthorn.stop();
  });
  const receivers = [await newReceiver(), await newReceiver()];
  for (const [index, receiver] of receivers.entries()) {
    receiver.hang();
    const tenant = `tenant-${index}`;
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    await receiver.waitFor(1);
  }
  const readiness = async () => (await posthorn.api('GET', '/readyz')).status;
  expect(await readiness()).toBe(200);
  const unlock = await lockRows(database, 'lock table posthorn.queue in exclusive mode');
  for (const receiver of receivers) receiver.release();
  await eventually('it is not ready', async () => (await readiness()) === 503);
  expect((await posthorn.api('GET', '/readyz')).body.detail).toBe(
    'The workers of 256 of 256 shards cannot read deliveries or record results.',
  );
  await eventually('its log says so', () => /cannot read deliveries.*not ready/.test(posthorn.output()), {
    saw: posthorn.output,
  });
  await unlock();
  await eventually('it is ready again', async () => (await readiness()) === 200);
  await eventually('its log says so', () => posthorn.output().includes('ready again'));
});

test('a server is not ready while it can store no events of any tenant', async () => {
  const database = await newDatabase();
  const posthorn = await startTestPosthorn({
    database,
    env: { POSTHORN_HEARTBEAT_MS: '50', POSTHORN_PROOF_MS: '200', POSTHORN_DEAD_AFTER_MS: '500' },
  });
  onTestFinished(async () => {
    await posthorn.stop();
  });
  const unlock = await lockRows(database, 'lock table posthorn.events in exclusive mode');
  const posts = ['a', 'b'].map((tenant) =>
    posthorn.api('POST', '/v1/events', { tenant, type: 'a.b', data: 1 }),
  );
  await eventually('it is not ready', async () => (await posthorn.api('GET', '/readyz')).status === 503);
  expect((await posthorn.api('GET', '/readyz')).body.detail).toBe('This server could not store new events.');
  await unlock();
  expect((await Promise.all(posts)).map(({ status }) => status)).toEqual([202, 202]);
  expect((await posthorn.api('GET', '/readyz')).status).toBe(200);
});
