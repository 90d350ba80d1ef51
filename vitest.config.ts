import { defineConfig } from 'vitest/config';
import { missingKafka } from './test/support/kafka/broker.ts';

/**
 * Test files that run at the same time. Most tests wait more than they compute, so there are more workers than cores. All
 * projects of a group need the same number. Vitest's default on two cores is one worker, which would run the unit tests
 * one after another.
 */
const maxWorkers = 3;

/** With TEST_REPORT=file the results are also written there, as JSON (`.ci/run` counts them). */
const report = process.env.TEST_REPORT ?? '';

/** End-to-end tests that also run with `POSTHORN_BACKBONE=kafka`, where there is Java: what happens to an event after its 202. */
const ENGINE = ['batches', 'debounce', 'disabled-endpoints', 'fan-out', 'idempotency'].map(
  (name) => `test/e2e/${name}.test.ts`,
);

/** `npm test` runs every project but `extended-*`; `npm run test:extended` runs those. */
export default defineConfig({
  test: {
    reporters: [
      'default',
      './test/support/skip-reporter.ts',
      ...(report === '' ? [] : [['json', { outputFile: report }] satisfies [string, object]]),
    ],
    projects: [
      {
        test: {
          name: 'unit',
          include: [
            'src/**/*.test.ts',
            'console/src/**/*.test.ts',
            'packages/*/test/**/*.test.ts',
            'test/*.test.ts',
            'test/simulation/**/*.test.ts',
            'test/conformance/!(*.postgres).test.ts',
          ],
          sequence: { groupOrder: 1 },
          // Isolation starts a process and loads all modules for each file, which took as long as the tests.
          isolate: false,
          maxWorkers,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'e2e',
          include: [
            'test/e2e/**/*.test.ts',
            'test/attacks/**/*.test.ts',
            'test/conformance/*.postgres.test.ts',
            'packages/*/e2e/**/*.test.ts',
          ],
          exclude: ['test/attacks/extended/**'],
          globalSetup: ['test/support/postgres.ts', 'test/support/program.ts'],
          setupFiles: ['test/support/no-leaks.ts'],
          sequence: { groupOrder: 1 },
          maxWorkers,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'console',
          include: ['test/console/**/*.test.ts'],
          globalSetup: [
            'test/support/postgres.ts',
            'test/support/program.ts',
            'test/console/support/prepare.ts',
          ],
          setupFiles: ['test/support/no-leaks.ts'],
          sequence: { groupOrder: 1 },
          maxWorkers,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'extended-chaos',
          include: ['test/extended/chaos/**/*.test.ts'],
          globalSetup: ['test/support/program.ts'],
          setupFiles: ['test/support/no-leaks.ts'],
          // These tests run first and alone, because they measure how long recovery takes.
          sequence: { groupOrder: 2 },
          maxWorkers: 2,
        },
      },
      {
        test: {
          name: 'extended-console',
          include: ['test/extended/console/**/*.test.ts'],
          globalSetup: [
            'test/support/postgres.ts',
            'test/support/program.ts',
            'test/console/support/prepare.ts',
          ],
          setupFiles: ['test/support/no-leaks.ts'],
          sequence: { groupOrder: 3 },
          maxWorkers,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'extended-kafka-backbone',
          include: missingKafka() === null ? ENGINE : [],
          globalSetup: [
            'test/support/postgres.ts',
            'test/support/program.ts',
            'test/support/kafka/backbone.ts',
          ],
          setupFiles: ['test/support/no-leaks.ts'],
          sequence: { groupOrder: 3 },
          maxWorkers,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'extended',
          include: [
            'test/extended/**/*.test.ts',
            'test/attacks/extended/**/*.test.ts',
            'test/production/**/*.test.ts',
          ],
          exclude: ['test/extended/chaos/**', 'test/extended/console/**'],
          globalSetup: ['test/support/postgres.ts', 'test/support/program.ts'],
          setupFiles: ['test/support/no-leaks.ts'],
          sequence: { groupOrder: 3 },
          maxWorkers,
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
    ],
  },
});
