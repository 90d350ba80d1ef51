import { expect, test } from 'vitest';
import type { NewEvent } from '../domain/event.ts';
import type { SchemaFailure } from '../ports/catalogue-store.ts';
import { SchemaFailures } from './schema-failures.ts';

test('VER-1: of the invalid payloads of a tenant and type a few are recorded, and others keep their room', async () => {
  let now = 0;
  let write = (): void => {};
  const recorded: SchemaFailure[] = [];
  const failures = new SchemaFailures({
    store: { recordFailures: async (some) => void recorded.push(...some) },
    clock: {
      now: () => now,
      monotonic: () => now,
      after: (_ms, task) => {
        write = task;
        return () => {};
      },
    },
    onProblem: (_what, error) => expect.unreachable(String(error)),
  });
  const refuse = (tenant: string, type: string, times: number): void => {
    for (let n = 0; n < times; n += 1)
      failures.onRefused({ tenant, type, schemaVersion: null } as NewEvent, {
        path: 'data',
        message: 'is bad',
      });
  };
  const take = (): number => {
    write();
    return recorded.splice(0).length;
  };

  refuse('noisy', 'a.b', 1_000);
  expect(take()).toBe(5);
  refuse('noisy', 'a.c', 1);
  expect(take()).toBe(1);
  for (let n = 0; n < 1_000; n += 1) refuse('noisy', `type.n${n}`, 1);
  expect(take()).toBe(25 - 6);
  refuse('other', 'a.b', 1);
  expect(take()).toBe(1);
  now += 5_000;
  refuse('noisy', 'a.b', 1);
  expect(take()).toBe(1);
});
