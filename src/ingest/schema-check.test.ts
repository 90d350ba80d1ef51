import { expect, test } from 'vitest';
import type { CompiledSchema } from '../catalogue/compile-schema.ts';
import type { KnownType } from '../catalogue/event-catalogue.ts';
import type { NewEvent } from '../domain/event.ts';
import { SchemaCheck } from './schema-check.ts';

const TYPE = { name: 'a.b', versions: [], latest: null } as unknown as KnownType;

/** A check of a payload takes five milliseconds. `checked`: the payloads, in the order in which they were checked. */
function createSlowCheck() {
  let now = 0;
  const checked: string[] = [];
  const schema: CompiledSchema = {
    check(value) {
      now += 5;
      checked.push(String(value));
      return value === 'bad' ? [{ path: 'data', message: 'is bad' }] : [];
    },
  };
  const check = new SchemaCheck({
    catalogue: { typeOf: () => TYPE, modeOf: () => 'strict', schemaOf: async () => schema },
    failures: { onRefused: () => {} },
    clock: { monotonic: () => now },
  });
  const send = async (tenant: string, data: string) =>
    check.check(
      { tenant, type: 'a.b', data: Buffer.from(JSON.stringify(data)), schemaVersion: null } as NewEvent,
      {
        canRefuse: true,
      },
    );
  return { send, checked };
}

test('VER-1: a request with many expensive checks holds up neither the process nor other tenants', async () => {
  const { send, checked } = createSlowCheck();
  const names = Array.from({ length: 100 }, (_, n) => `big ${n}`);
  const big = names.map((name) => send('big', name));
  const small = send('small', 'small 0');
  // Other work of the process gets its turn after a few checks.
  let turns = 0;
  let isDone = false;
  const countTurns = (): void => {
    turns += 1;
    if (!isDone) setImmediate(countTurns);
  };
  setImmediate(countTurns);
  await small;
  expect(checked.length).toBeLessThan(10);
  await Promise.all(big);
  isDone = true;
  expect(turns).toBeGreaterThanOrEqual(20);
  // The events of a tenant keep their order.
  expect(checked.filter((name) => name.startsWith('big'))).toEqual(names);
});

test('VER-1: an invalid payload is refused, also if its check had to wait', async () => {
  const { send } = createSlowCheck();
  const others = Array.from({ length: 20 }, (_, n) => send('acme', `${n}`));
  const bad = send('acme', 'bad');
  await expect(bad).rejects.toMatchObject({ code: 'payload_invalid', errors: [{ path: 'data' }] });
  await expect(Promise.all(others)).resolves.toHaveLength(20);
});
