import { createPostgresFixture } from './support/postgres-fixture.ts';
import { describeTaskStore } from './task-store.ts';

describeTaskStore('PostgreSQL', createPostgresFixture);
