import { expect, test, vi } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';
import type { AttemptOutcome, Verdict } from '../domain/outcome.ts';
import type { Pool } from '../store/database.ts';
import { EndpointStats } from './endpoint-stats.ts';

const HOUR_MS = 3_600_000;
const NOON = 500_000 * HOUR_MS;
const DELIVERED: Verdict = { kind: 'delivered' };
const RETRY: Verdict = { kind: 'retry', dueAt: 0 };

const outcome = (startedAt: number): AttemptOutcome => ({
  startedAt,
  durationMs: 1,
  timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null },
  statusCode: 200,
  error: null,
  url: '',
  requestHeaders: {},
  responseHeaders: null,
  responseBody: null,
  responseTruncated: false,
  retryAfterMs: null,
});

/** Stands in for the database: fails as often as told, and keeps what it was given. */
function newStats(failures: number) {
  const written: { hour: number; attempts: number; tries: number[] }[] = [];
  let left = failures;
  const query = ({ values }: { values: [string] }) => {
    if (left > 0) {
      left -= 1;
      return Promise.reject(new Error('away'));
    }
    written.push(...JSON.parse(values[0]));
    return Promise.resolve({ rows: [] });
  };
  const problem = vi.fn();
  const pool = { query } as unknown as Pool;
  return { written, problem, stats: new EndpointStats({ pool, clock: systemClock, everyMs: 1, problem }) };
}

test('one row for each endpoint and hour, also for requests that began in the hour before', async () => {
  const { stats, written } = newStats(0);
  const id = newId(NOON);
  stats.record(id, outcome(NOON - 1), DELIVERED, 1);
  stats.record(id, outcome(NOON), DELIVERED, 2);
  stats.record(id, outcome(NOON - 2), RETRY, 1);
  stats.record(id, outcome(NOON + 1), DELIVERED, 40);
  await stats.flush();
  expect(written.toSorted((a, b) => a.hour - b.hour)).toMatchObject([
    { hour: (NOON - HOUR_MS) / 1000, attempts: 2, tries: [1] },
    { hour: NOON / 1000, attempts: 2, tries: [0, 1, 0, 0, 0, 0, 0, 0, 0, 1] },
  ]);
  await stats.flush();
  expect(written).toHaveLength(2);
});

test('what could not be written is written with the next', async () => {
  const { stats, written, problem } = newStats(1);
  const id = newId(NOON);
  stats.record(id, outcome(NOON), DELIVERED, 1);
  await stats.flush();
  expect(problem).toHaveBeenCalledOnce();
  stats.record(id, outcome(NOON), DELIVERED, 1);
  await stats.stop();
  expect(written).toMatchObject([{ attempts: 2, tries: [2] }]);
});
