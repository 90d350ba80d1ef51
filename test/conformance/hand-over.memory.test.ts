import { systemClock } from '../../src/domain/clock.ts';
import { MemoryHandOver, MemoryHandOverHub } from '../../src/memory/memory-hand-over.ts';
import { describeHandOver } from './hand-over.ts';

describeHandOver('memory', async () => {
  const hub = new MemoryHandOverHub();
  return { create: () => new MemoryHandOver({ hub, clock: systemClock }), close: async () => {} };
});
