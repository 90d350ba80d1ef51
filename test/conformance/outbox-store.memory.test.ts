import { describeOutboxStore } from './outbox-store.ts';
import { createMemoryFixture } from './support/memory-fixture.ts';

describeOutboxStore('memory', createMemoryFixture);
