import { describeEndpointDirectory } from './endpoint-directory.ts';
import { createPostgresFixture } from './support/postgres-fixture.ts';

describeEndpointDirectory('PostgreSQL', createPostgresFixture);
