import { describeOutboxStore } from './outbox-store.ts';
import { createPostgresFixture } from './support/postgres-fixture.ts';

describeOutboxStore('PostgreSQL', createPostgresFixture);
