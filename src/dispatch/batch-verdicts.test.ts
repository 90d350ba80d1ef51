import fc from 'fast-check';
import { expect, test } from 'vitest';
import { resolveBatch } from '../domain/batch.ts';
import type { WaitingDelivery } from '../domain/delivery.ts';
import { resolveRetry } from '../domain/endpoint-config.ts';
import { deliveryIdOf, newEventId, newId } from '../domain/ids.ts';
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

test('FAN-4: a batch keeps its id only with all its events, and halves share them out', () => {
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
