import { expect, test } from 'vitest';
import { DAY_MS } from '../../domain/retention.ts';
import { storageKinds } from '../../domain/storage.ts';
import type { StorageReport } from '../../manage/storage.ts';
import { judgeStorage } from './judge-storage.ts';

const NOW = 1000 * DAY_MS;
const kind = { bytes: 1_300_000_000, rows: 1_000_000, oldestAt: NOW - 30 * DAY_MS, retentionDays: 90 };
const report: StorageReport = {
  kinds: Object.fromEntries(storageKinds.map((name) => [name, kind])) as StorageReport['kinds'],
  databaseBytes: 4e9,
  bytesPerEvent: 1300,
  bytesPerDay: 43_000_000,
  disk: null,
  fullAt: null,
  overdueMs: 0,
};

test('doctor says how much is stored, per event and per day, and for how long', () => {
  expect(judgeStorage(report, NOW)).toMatchObject({
    state: 'ok',
    detail:
      'events 1.3 GB, deliveries 1.3 GB, attempts 1.3 GB, 1.3 kB per event, oldest event 30 days old, kept for 90 days, grows by 43.0 MB per day',
  });
});

test('doctor warns of a disk that will be full, and of partitions that cannot be dropped', () => {
  const fullIn = (days: number) => judgeStorage({ ...report, fullAt: NOW + days * DAY_MS }, NOW).state;
  expect([fullIn(100), fullIn(10), fullIn(1)]).toEqual(['ok', 'warning', 'problem']);
  expect(judgeStorage({ ...report, overdueMs: 5 * DAY_MS }, NOW)).toMatchObject({ state: 'warning' });
});
