import { describeOwnershipStore } from './ownership-store.ts';
import { createPostgresFixture } from './support/postgres-fixture.ts';

describeOwnershipStore('PostgreSQL', createPostgresFixture);
