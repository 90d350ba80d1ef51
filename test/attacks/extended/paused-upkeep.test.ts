/** A process that is paused during upkeep does not keep the lock of upkeep, so that another process does the work. */
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../../src/postgres/database.ts';
import { createSecretBox } from '../../../src/postgres/secret-box.ts';
import { createPostgresUpkeepStore } from '../../../src/postgres/upkeep-store.ts';
import { createTestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { startProcess } from '../../support/processes.ts';

const CHILD = fileURLToPath(new URL('../../support/upkeep-child.ts', import.meta.url));

test('upkeep keeps its lock while it works, and loses it within fifteen seconds if its process is paused', {
  timeout: 60_000,
}, async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const opened = openDatabase({
    connectionString: database.url,
    apiConnections: 2,
    dispatchConnections: 1,
    onIdleError() {},
  });
  onTestFinished(() => opened.close());
  const store = createPostgresUpkeepStore({
    database: opened,
    ensurePartitions: async () => {},
    secretBox: createSecretBox(Buffer.alloc(32), []),
  });
  const takesLock = () => store.runExclusively(async () => {});

  const child = startProcess([CHILD, database.url], { env: {} });
  onTestFinished(async () => {
    child.signal('SIGCONT');
    await child.kill('SIGKILL');
  });
  await eventually('the child has the lock', () => child.stdout().includes('locked'), { saw: child.output });
  // Longer than PostgreSQL allows a transaction to be idle.
  await sleep(12_000);
  expect(await takesLock()).toBe(false);
  child.signal('SIGSTOP');
  await eventually('another process can take the lock', takesLock, { timeoutMs: 15_000 });
});
