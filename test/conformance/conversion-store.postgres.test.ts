import { describeConversionStore } from './conversion-store.ts';
import { createPostgresFixture } from './support/postgres-fixture.ts';

describeConversionStore('PostgreSQL', createPostgresFixture);
