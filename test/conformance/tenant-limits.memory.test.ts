import { createMemoryFixture } from './support/memory-fixture.ts';
import { describeTenantLimits } from './tenant-limits.ts';

describeTenantLimits('memory', createMemoryFixture);
