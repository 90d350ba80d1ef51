import { systemClock } from '../../src/domain/clock.ts';
import { MemoryBus, MemoryNotifier } from '../../src/memory/memory-notifier.ts';
import { describeNotifier } from './notifier.ts';

describeNotifier('memory', async () => {
  const bus = new MemoryBus();
  const notifiers: MemoryNotifier[] = [];
  return {
    create() {
      const notifier = new MemoryNotifier({ bus, clock: systemClock });
      notifiers.push(notifier);
      return notifier;
    },
    async breakConnections() {
      for (const notifier of notifiers) notifier.breakConnection();
    },
    close: async () => {},
  };
});
