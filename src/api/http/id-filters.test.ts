import { expect, it } from 'vitest';
import { idBounds } from './id-filters.ts';

it('finds bounds for the largest id of an event', () => {
  const { from, before } = idBounds({ event_id: `evt_7${'z'.repeat(25)}` });
  expect(before).toBe('ffffffff-ffff-ffff-ffff-ffffffffffff');
  expect(from! <= before!).toBe(true);
});
