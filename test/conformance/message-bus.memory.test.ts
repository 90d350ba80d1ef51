import { MemoryMessageBus, MemoryMessageHub } from '../../src/memory/memory-message-bus.ts';
import { describeMessageBus } from './message-bus.ts';
import { newId } from './support/ids.ts';

describeMessageBus('memory', async () => {
  const hub = new MemoryMessageHub();
  return {
    create: async () => new MemoryMessageBus(newId(), hub),
    breakServer: async () => {
      hub.isUp = false;
    },
    restoreServer: async () => hub.restart(),
    close: async () => {},
  };
});
