import { createMemoryFixture } from './support/memory-fixture.ts';
import { describeTaskStore } from './task-store.ts';

describeTaskStore('memory', createMemoryFixture);
