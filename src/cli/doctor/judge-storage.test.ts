import { expect, test } from 'vitest';
import { DAY_MS } from '../../domain/retention.ts';
import { storageKinds } from '../../domain/storage.ts';
import type { StorageReport } from '../../manage/storage.ts';
import { judgeStorage } from './judge-storage.ts';

const NOW = 1000 * DAY_MS;
const kind = { bytes: 1_300_000_000, rows: 1_000_000, oldestAt: NOW - 30 * DAY_MS, retentionDays: 90 };
const small = { ...kind, bytes: 8192 };
const report: StorageReport = {
  kinds: {
    ...(Object.fromEntries(storageKinds.map((name) => [name, small])) as StorageReport['kinds']),
    events: kind,
    deliveries: kind,
    attempts: small,
  },
  databaseBytes: 4e9,
  deadLettersExpired: 0,
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
      'events 1.3 GB, deliveries 1.3 GB, attempts 8.2 kB, 1.3 kB per event, oldest event 30 days old, kept for 90 days, grows by 43.0 MB per day',
  });
});

test('doctor lists every kind that takes more than a hundredth, with its age and retention if they differ', () => {
  const kinds = {
    ...report.kinds,
    audit: { ...kind, bytes: 2e9, oldestAt: NOW - 400 * DAY_MS, retentionDays: 365 },
    dead_letters: { ...kind, bytes: 1e9, retentionDays: null },
    inboxes: { ...kind, bytes: 41e6 },
    outbox: { ...kind, bytes: 39e6 },
  };
  expect(judgeStorage({ ...report, kinds }, NOW).detail).toMatch(
    /^audit 2\.0 GB \(oldest 400 days, kept for 365 days\), events 1\.3 GB, deliveries 1\.3 GB, dead letters 1\.0 GB \(oldest 30 days, no limit\), inboxes 41\.0 MB, attempts 8\.2 kB, 1\.3 kB per event/,
  );
});

test('doctor warns of a disk that will be full, and of partitions that cannot be dropped', () => {
  const fullIn = (days: number) => judgeStorage({ ...report, fullAt: NOW + days * DAY_MS }, NOW).state;
  expect([fullIn(100), fullIn(10), fullIn(1)]).toEqual(['ok', 'warning', 'problem']);
  expect(judgeStorage({ ...report, overdueMs: 5 * DAY_MS }, NOW)).toMatchObject({ state: 'warning' });
});
