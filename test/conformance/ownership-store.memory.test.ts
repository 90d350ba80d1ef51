import { describeOwnershipStore } from './ownership-store.ts';
import { createMemoryFixture } from './support/memory-fixture.ts';

describeOwnershipStore('memory', createMemoryFixture);
