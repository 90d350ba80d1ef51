/**
 * A tenant has 100 endpoints with 500 patterns each, and publishes batches of 1,000 events, each with its own type.
 * Also measures what a million patterns cost: the time of one match, and the memory of one pattern.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { PatternIndex } from '../../src/domain/pattern-index.ts';
import { attackWith, insertEndpoints, noisyBench, type Target } from '../noisy.ts';
import type { Bench, Figure } from '../scenario.ts';

const ENDPOINTS = 100;
const PATTERNS = 500;
const EVENTS = 1_000;

const tenantOf = ({ run }: Target): string => `patterns-${run}`;

const attack = noisyBench({
  name: 'patterns',
  beside: 'beside many patterns and types',
  async prepare(target) {
    for (let n = 0; n < ENDPOINTS; n += 1) {
      const events = Array.from({ length: PATTERNS }, (_, index) => `a${n}.b${index}.*`);
      await insertEndpoints(target.postgres, { tenant: tenantOf(target), count: 1, config: { events } });
    }
  },
  async run(target, signal) {
    for (let batch = 0; !signal.aborted; batch += 1) {
      const events = Array.from({ length: EVENTS }, (_, index) => ({
        tenant: tenantOf(target),
        type: `a${index % ENDPOINTS}.b${index % PATTERNS}.c${batch}-${index}`,
        data: 1,
      }));
      await attackWith(target, '/v1/events/batch', JSON.stringify({ events }));
    }
  },
});

export const noisyPatterns: Bench = {
  name: attack.name,
  run: async (context) => [...(await attack.run(context)), ...measureIndex()],
};

const INDEXED = 1_000_000;
const MATCHES = 200_000;

function measureIndex(): Figure[] {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const index = new PatternIndex<object>();
  for (let n = 0; n < INDEXED; n += 1) index.add(`type.${n}.of.a.tenant${n % 2 === 0 ? '' : '.*'}`, {});
  collectGarbage();
  const bytes = (process.memoryUsage().heapUsed - before) / INDEXED;
  const startedAt = performance.now();
  for (let n = 0; n < MATCHES; n += 1) index.match(`type.${n}.of.a.tenant.x`);
  const matchUs = ((performance.now() - startedAt) * 1_000) / MATCHES;
  return [
    { name: 'a million patterns: one match', value: matchUs, unit: 'µs', limit: { atMost: 20 } },
    { name: 'a million patterns: memory of one', value: bytes, unit: 'B', limit: { atMost: 400 } },
  ];
}
