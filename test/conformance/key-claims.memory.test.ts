import { describeKeyClaims } from './key-claims.ts';
import { createMemoryFixture } from './support/memory-fixture.ts';

describeKeyClaims('memory', createMemoryFixture);
