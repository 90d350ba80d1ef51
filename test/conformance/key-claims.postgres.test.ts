import { describeKeyClaims } from './key-claims.ts';
import { createPostgresFixture } from './support/postgres-fixture.ts';

describeKeyClaims('PostgreSQL', createPostgresFixture);
