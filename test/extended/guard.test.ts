/** EGR-1: 100,000 random URLs and answers of name servers. `src/deliver/guard-property.test.ts` checks 1,000. */
import { expect, it } from 'vitest';
import { checkGuard } from '../support/guard-property.ts';

it('connects exactly to the addresses that an independent list allows', async () => {
  const { connected, refused } = await checkGuard(100_000);
  expect(connected).toBeGreaterThan(10_000);
  expect(refused).toBeGreaterThan(10_000);
});
