import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
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
          ],
          testTimeout: 20_000,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts', 'packages/*/e2e/**/*.test.ts', 'test/chaos/**/*.test.ts'],
          globalSetup: ['test/support/postgres.ts'],
          setupFiles: ['test/support/no-leaks.ts'],
          // They wait more than they compute, and the cores are few.
          maxWorkers: 3,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'console',
          include: ['test/console/**/*.test.ts'],
          globalSetup: ['test/support/postgres.ts', 'test/console/support/prepare.ts'],
          setupFiles: ['test/support/no-leaks.ts'],
          // Must be the same for all that run at the same time.
          maxWorkers: 3,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
