import { describeAcceptLog } from './accept-log.ts';
import { createPostgresFixture } from './support/postgres-fixture.ts';

describeAcceptLog('PostgreSQL', createPostgresFixture);
