import { TenantRates } from '../../src/ingest/index.ts';
import { MemoryRateLimits } from '../../src/memory/memory-rate-limits.ts';
import { describeRateLimits } from './rate-limits.ts';

describeRateLimits('memory', (limit, clock) => new MemoryRateLimits(limit, clock));

describeRateLimits(
  'the accept stage',
  (limit, clock) => new TenantRates({ limits: { load: async () => new Map() }, clock, ...limit }),
);
