import { describeEventStore } from './event-store.ts';
import { createMemoryFixture } from './support/memory-fixture.ts';

describeEventStore('memory', createMemoryFixture);
