import { describeEndpointDirectory } from './endpoint-directory.ts';
import { createMemoryFixture } from './support/memory-fixture.ts';

describeEndpointDirectory('memory', createMemoryFixture);
