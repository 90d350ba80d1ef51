import { expect, test } from 'vitest';
import { countConnections } from './check-database.ts';

const DIRECT = { databasePoolSize: 10, directDatabaseUrl: null };

test.each([
  ['all', 1, 23],
  ['api', 1, 19],
  ['worker', 1, 15],
  // One API process and one worker.
  ['all', 2, 34],
  ['worker', 4, 60],
] as const)('a node with role %s and %i processes opens at most %i connections', (role, processes, count) => {
  expect(countConnections({ ...DIRECT, role, processes })).toBe(count);
});

test('behind a pooler, only connections that need a session count', () => {
  const config = { databasePoolSize: 10, directDatabaseUrl: 'postgres://db/posthorn' };
  expect(countConnections({ ...config, role: 'all', processes: 1 })).toBe(5);
  expect(countConnections({ ...config, role: 'api', processes: 1 })).toBe(4);
});
