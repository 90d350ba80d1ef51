import { BusLinks, PeerLinks } from '../../src/dispatch/index.ts';
import { systemClock } from '../../src/domain/clock.ts';
import { MemoryMessageBus, MemoryMessageHub } from '../../src/memory/memory-message-bus.ts';
import { describeHandOver } from './hand-over.ts';
import { newId } from './support/ids.ts';

describeHandOver('a message bus', async () => {
  const hub = new MemoryMessageHub();
  return {
    create() {
      const id = newId();
      const bus = new BusLinks(new MemoryMessageBus(id, hub));
      return new PeerLinks({ id, transports: [], bus, clock: systemClock, onProblem: () => {} });
    },
    close: async () => {},
  };
});
