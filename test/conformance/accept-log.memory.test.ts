import { describeAcceptLog } from './accept-log.ts';
import { createMemoryFixture } from './support/memory-fixture.ts';

describeAcceptLog('memory', createMemoryFixture);
