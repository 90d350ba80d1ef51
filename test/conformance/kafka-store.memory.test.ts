import { describeKafkaStore } from './kafka-store.ts';
import { createMemoryFixture } from './support/memory-fixture.ts';

describeKafkaStore('memory', createMemoryFixture);
