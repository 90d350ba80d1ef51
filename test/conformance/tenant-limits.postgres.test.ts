import { createPostgresFixture } from './support/postgres-fixture.ts';
import { describeTenantLimits } from './tenant-limits.ts';

describeTenantLimits('PostgreSQL', createPostgresFixture);
