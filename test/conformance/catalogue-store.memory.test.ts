import { describeCatalogueStore } from './catalogue-store.ts';
import { createMemoryFixture } from './support/memory-fixture.ts';

describeCatalogueStore('memory', createMemoryFixture);
