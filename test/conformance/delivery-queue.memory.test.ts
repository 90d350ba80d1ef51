import { describeDeliveryQueue } from './delivery-queue.ts';
import { createMemoryFixture } from './support/memory-fixture.ts';

describeDeliveryQueue('memory', createMemoryFixture, { propertyRuns: 200 });
