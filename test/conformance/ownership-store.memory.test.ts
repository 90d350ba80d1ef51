import { describeOwnershipStore } from './ownership-store.ts';
import { describeRegions } from './regions.ts';
import { createMemoryFixture } from './support/memory-fixture.ts';

describeOwnershipStore('memory', createMemoryFixture);
describeRegions('memory', createMemoryFixture);
