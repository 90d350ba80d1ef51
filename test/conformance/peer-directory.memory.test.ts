import { describePeerDirectory } from './peer-directory.ts';
import { createMemoryFixture } from './support/memory-fixture.ts';

describePeerDirectory('memory', createMemoryFixture);
