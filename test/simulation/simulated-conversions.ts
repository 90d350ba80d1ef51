/**
 * The real convert stage with converters that take virtual time and sometimes fail. They are impure on purpose: each
 * run gives another result. So the checks detect a payload that was converted twice and not read back from the store.
 */
import { Conversions } from '../../src/convert/index.ts';
import type { Clock } from '../../src/domain/clock.ts';
import { findPath, type TypeVersion } from '../../src/domain/version-pins.ts';
import type { ConversionStore } from '../../src/ports/conversion-store.ts';
import type { Random } from './virtual-time.ts';
import type { Weather } from './weather.ts';

export const PINNED_VERSION = '2025-10-01';

const VERSIONS = ['2025-10-01', '2026-01-01', '2026-04-01'].map(
  (name): TypeVersion => ({ name, status: 'active', createdAt: 0, deprecatedAt: null, sunsetAt: null }),
);
const STEPS = [
  { from: '2026-04-01', to: '2026-01-01' },
  { from: '2026-01-01', to: '2025-10-01' },
];

export interface SimulatedConversionsOptions {
  readonly store: ConversionStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly weather: () => Weather;
  readonly onProblem: (what: string) => void;
}

let conversions = 0;

export function simulateConversions(options: SimulatedConversionsOptions): Conversions {
  const { store, clock, random, weather, onProblem } = options;
  return new Conversions({
    versions: { versionsOf: () => VERSIONS, deprecationOf: () => null, hasDeprecations: false },
    store,
    converters: {
      hash: 'ab'.repeat(16),
      findPath: (_type, from, to) => findPath(STEPS, from, to),
      run(_request, done) {
        clock.after(random.between(0, 5), () => {
          conversions += 1;
          if (random.chance(weather().conversionFailureRate)) done({ kind: 'failed', message: 'failed' });
          else done({ kind: 'converted', data: Buffer.from(`{"conversion":${conversions}}`) });
        });
      },
    },
    now: () => clock.monotonic(),
    onProblem,
  });
}
