import { describeEventStore } from './event-store.ts';
import { createPostgresFixture } from './support/postgres-fixture.ts';

describeEventStore('PostgreSQL', createPostgresFixture);
