import { expect, test } from 'vitest';
import { judgeSoak, type SoakMinute } from '../scripts/soak-verdict.ts';

const minute = (changes: Partial<SoakMinute> = {}): SoakMinute => ({
  rssMb: 400,
  connections: 40,
  handles: 200,
  acceptP50Ms: 4,
  acceptP99Ms: 20,
  deliverP50Ms: 8,
  deliverP99Ms: 40,
  boundedTablesMb: 8,
  ...changes,
});
const grown = (minutes: readonly SoakMinute[]) =>
  judgeSoak(minutes)!.flatMap(({ figure, isFlat }) => (isFlat ? [] : [figure]));

test('a soak test reports figures that grow, and only those', () => {
  const leaking = Array.from({ length: 30 }, (_, index) =>
    minute({
      rssMb: 400 + index * 8,
      handles: 200 + index * 3,
      deliverP99Ms: index === 20 ? 900 : 40,
      boundedTablesMb: 8 + index * 2,
    }),
  );
  expect(grown(leaking)).toEqual(['rssMb', 'handles', 'boundedTablesMb']);
});

test('a soak test does not count the warm-up', () => {
  const warm = Array.from({ length: 30 }, (_, index) => minute({ rssMb: Math.min(400, 150 + index * 50) }));
  expect(grown(warm)).toEqual([]);
});

test('a soak test of a few minutes has no result', () => {
  expect(judgeSoak([minute(), minute(), minute({ rssMb: 9000 })])).toBeNull();
});
