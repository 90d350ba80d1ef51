import { describePeerDirectory } from './peer-directory.ts';
import { createPostgresFixture } from './support/postgres-fixture.ts';

describePeerDirectory('PostgreSQL', createPostgresFixture);
