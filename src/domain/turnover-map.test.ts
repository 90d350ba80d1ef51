import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { TurnoverMap } from './turnover-map.ts';

test('has the entries of a Map, in their order, through many deletions', () => {
  const map = new TurnoverMap<number, string>();
  const model = new Map<number, string>();
  for (let key = 0; key < 1_000; key += 1) {
    map.set(key, `v${key}`);
    model.set(key, `v${key}`);
    if (key < 5) continue;
    const old = key % 3 === 0 ? key : key - 5;
    expect(map.delete(old)).toBe(model.delete(old));
    expect(map.delete(old)).toBe(false);
    expect([map.size, map.get(key), map.has(old)]).toEqual([model.size, model.get(key), false]);
    expect([...map.values()]).toEqual([...model.values()]);
  }
  map.clear();
  expect([map.size, ...map.values()]).toEqual([0]);
});

/** Returns how many megabytes of deleted entries minor collections have promoted, after a major collection. */
async function measurePromoted(createMap: string): Promise<number> {
  const script = `
    import { getHeapSpaceStatistics } from 'node:v8';
    import { TurnoverMap } from ${JSON.stringify(new URL('./turnover-map.ts', import.meta.url).href)};
    const map = ${createMap};
    const inFlight = [];
    const run = (count) => {
      for (let n = 0; n < count; n += 1) {
        const entry = new Array(60).fill(n);
        map.set(entry, n);
        inFlight.push(entry);
        if (inFlight.length > 3) map.delete(inFlight.shift());
      }
    };
    const promoted = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space').space_used_size;
    run(1_000);
    gc();
    const before = promoted();
    for (let rounds = 0; rounds < 4; rounds += 1) {
      run(10_000);
      gc({ type: 'minor' });
    }
    console.log((promoted() - before) / 1024 / 1024);`;
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--expose-gc',
    '--input-type=module',
    '--eval',
    script,
  ]);
  return Number(stdout);
}

// V8 may run a major collection at any moment. Then nothing was promoted, and the measurement is repeated.
test('does not keep deleted entries alive until the next major collection, as a Map does', {
  retry: 4,
}, async () => {
  expect(await measurePromoted('new TurnoverMap()')).toBeLessThan(2);
  // If this fails, V8 has changed, and this class may no longer be needed.
  expect(await measurePromoted('new Map()')).toBeGreaterThan(5);
});
