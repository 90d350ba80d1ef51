import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BATCH_RESULT_TYPE, resolveBatch } from '../domain/batch.ts';
import type { WaitingDelivery } from '../domain/delivery.ts';
import { resolveRetry } from '../domain/endpoint-config.ts';
import { deliveryIdOf, eventIdOfDelivery, newEventId, newId, publicId } from '../domain/ids.ts';
import { unsentOutcome } from '../domain/outcome.ts';
import { decideBatch } from './batch-verdicts.ts';

const NOW = 1_800_000_000_000;
const DAY_MS = 86_400_000;

const deliveryOf = (ageMs: number, attempts: number): WaitingDelivery => ({
  id: deliveryIdOf(newEventId(NOW), 0),
  endpointId: newId(NOW),
  seq: 1,
  attempts,
  attemptsBeforeReplay: 0,
  dueAt: null,
  agesFrom: NOW - ageMs,
  trigger: 'auto',
  lastErrorClass: null,
});

const members = fc.array(
  fc.record({ ageMs: fc.integer({ min: 0, max: 4 * DAY_MS }), attempts: fc.integer({ min: 0, max: 8 }) }),
  { minLength: 1, maxLength: 50 },
);

test('FAN-4: a batch keeps its id only while it has all its events, and its two halves have all of them', () => {
  fc.assert(
    fc.property(
      members,
      fc.constantFrom(200, 207, 400, 404, 410, 413, 429, 500, 503),
      fc.boolean(),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (given, statusCode, split, draw) => {
        const deliveries = given.map(({ ageMs, attempts }) => deliveryOf(ageMs, attempts));
        const outcome = {
          ...unsentOutcome('https://x.test/', { class: 'http_5xx', message: '' }, NOW),
          statusCode,
        };
        const batchId = newId(NOW);
        const verdicts = decideBatch(
          batchId,
          deliveries,
          { ...outcome, error: null },
          {
            now: NOW,
            random: () => draw,
            retryAfterCapMs: 1_000,
            policy: resolveRetry(),
            settings: resolveBatch({ split_rejected: split }),
            newId: () => newId(NOW),
          },
        );
        expect(verdicts).toHaveLength(deliveries.length);
        const retries = verdicts.filter(({ verdict }) => verdict.kind === 'retry');
        const keepsId = verdicts.some((each) => each.batchId === batchId);
        if (keepsId) expect(retries).toHaveLength(deliveries.length);
        // All that are retried are due together.
        expect(
          new Set(retries.map(({ verdict }) => verdict.kind === 'retry' && verdict.dueAt)).size,
        ).toBeLessThan(2);
        const isSplit =
          deliveries.length > 1 && (statusCode === 413 || (split && [400, 404].includes(statusCode)));
        const sizes = [...Map.groupBy(verdicts, (each) => each.batchId).values()].map(({ length }) => length);
        if (isSplit) expect(sizes).toEqual([Math.ceil(given.length / 2), Math.floor(given.length / 2)]);
      },
    ),
  );
});

test('FAN-4: the events of a batch share the outcome of its request, except the first and those that failed', () => {
  const deliveries = Array.from({ length: 5 }, () => deliveryOf(0, 0));
  const answer = {
    ...unsentOutcome('https://x.test/', { class: 'http_5xx', message: '' }, NOW),
    error: null,
  };
  const outcomesOf = (headers: Record<string, string>, body: string) =>
    decideBatch(
      newId(NOW),
      deliveries,
      { ...answer, statusCode: 200, responseHeaders: headers, responseBody: Buffer.from(body) },
      {
        now: NOW,
        random: () => 0.5,
        retryAfterCapMs: 1_000,
        policy: resolveRetry(),
        settings: resolveBatch({}),
        newId: () => newId(NOW),
      },
    ).map(({ outcome }) => outcome);
  expect(new Set(outcomesOf({}, 'ok')).size).toBe(1);
  const large = outcomesOf({}, 'x'.repeat(2_000));
  expect(large.map(({ responseBody }) => responseBody?.length)).toEqual([2_000, 1_024, 1_024, 1_024, 1_024]);
  expect(new Set(large).size).toBe(2);
  const failed = [1, 3].map((index) => publicId('evt', eventIdOfDelivery(deliveries[index]!.id)));
  const partial = outcomesOf({ 'content-type': BATCH_RESULT_TYPE }, JSON.stringify({ failed }));
  expect(partial.map(({ error }) => error?.class ?? null)).toEqual([
    null,
    'batch_event_failed',
    null,
    'batch_event_failed',
    null,
  ]);
  const unreadable = outcomesOf({ 'content-type': BATCH_RESULT_TYPE }, '{');
  expect(unreadable.map(({ error }) => error?.class)).toEqual(deliveries.map(() => 'batch_result_invalid'));
});
