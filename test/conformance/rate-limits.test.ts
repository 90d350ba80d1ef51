import { LocalBuckets } from '../../src/domain/local-buckets.ts';
import { TenantRates } from '../../src/ingest/index.ts';
import { MemoryRateLimits } from '../../src/memory/memory-rate-limits.ts';
import { describeRateLimits } from './rate-limits.ts';

describeRateLimits('memory', (limit, clock) => ({ limits: new MemoryRateLimits(limit, clock) }));

describeRateLimits('the accept stage', (limit, clock) => ({
  limits: new TenantRates({
    limits: { load: async () => new Map() },
    buckets: new LocalBuckets(clock),
    clock,
    ...limit,
  }),
}));
