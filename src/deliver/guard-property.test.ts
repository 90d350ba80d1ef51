/** EGR-1: 1,000 random URLs and answers of name servers. `test/extended/guard.test.ts` checks 100,000. */
import { expect, it } from 'vitest';
import { checkGuard } from '../../test/support/guard-property.ts';

it('connects exactly to the addresses that an independent list allows', async () => {
  const { connected, refused } = await checkGuard(1_000);
  expect(connected).toBeGreaterThan(100);
  expect(refused).toBeGreaterThan(100);
});
