import { describeKafkaStore } from './kafka-store.ts';
import { createPostgresFixture } from './support/postgres-fixture.ts';

describeKafkaStore('PostgreSQL', createPostgresFixture);
