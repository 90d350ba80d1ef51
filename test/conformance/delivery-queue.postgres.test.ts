import { describeDeliveryQueue } from './delivery-queue.ts';
import { createPostgresFixture } from './support/postgres-fixture.ts';

describeDeliveryQueue('PostgreSQL', createPostgresFixture, { propertyRuns: 5 });
