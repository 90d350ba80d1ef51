/** A process that is paused inside a transaction does not keep its locks. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase, purposes } from '../../src/postgres/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.drop());

test.each([
  ['direct connections', false],
  ['connections through a pooler', true],
])('%s of every purpose limit lock waits and idle transactions', async (_, isPooled) => {
  const opened = openDatabase({
    connectionString: database.url,
    directConnectionString: isPooled ? database.url : null,
    apiConnections: 1,
    dispatchConnections: 1,
    onIdleError() {},
  });
  try {
    for (const purpose of purposes) {
      const { rows } = await opened
        .pool(purpose)
        .query(
          "select current_setting('lock_timeout') as lock, current_setting('idle_in_transaction_session_timeout') as idle",
        );
      expect(rows, purpose).toEqual([{ lock: expect.stringMatching(/^[1-9]\d*(ms|s)$/), idle: '4s' }]);
    }
  } finally {
    await opened.close();
  }
});
