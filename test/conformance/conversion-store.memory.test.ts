import { describeConversionStore } from './conversion-store.ts';
import { createMemoryFixture } from './support/memory-fixture.ts';

describeConversionStore('memory', createMemoryFixture);
