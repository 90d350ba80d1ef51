import { describeFanOutStore } from './fan-out-store.ts';
import { createPostgresFixture } from './support/postgres-fixture.ts';

describeFanOutStore('PostgreSQL', createPostgresFixture);
