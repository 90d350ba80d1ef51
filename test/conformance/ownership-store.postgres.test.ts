import { describeOwnershipStore } from './ownership-store.ts';
import { describeRegions } from './regions.ts';
import { createPostgresFixture } from './support/postgres-fixture.ts';

describeOwnershipStore('PostgreSQL', createPostgresFixture);
describeRegions('PostgreSQL', createPostgresFixture);
