import { describeFanOutStore } from './fan-out-store.ts';
import { createMemoryFixture } from './support/memory-fixture.ts';

describeFanOutStore('memory', createMemoryFixture);
