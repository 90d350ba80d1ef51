import type { DeliveryQueue } from '../ports/delivery-queue.ts';
import { createMemoryBatchLog } from './memory-batch-log.ts';
import { createMemoryDebouncer } from './memory-debouncer.ts';
import { createMemoryLaneReader, createMemoryProbeRequester } from './memory-lane-reader.ts';
import { createMemoryQueueCleaner } from './memory-queue-cleaner.ts';
import { createMemoryReplayer } from './memory-replayer.ts';
import { createMemorySettlementSink } from './memory-settlement-sink.ts';
import { createMemoryStartRecorder } from './memory-start-recorder.ts';
import type { MemoryStore } from './memory-store.ts';

export function createMemoryDeliveryQueue(store: MemoryStore): DeliveryQueue {
  return {
    ...createMemoryLaneReader(store),
    ...createMemoryStartRecorder(store),
    ...createMemoryBatchLog(store),
    ...createMemoryDebouncer(store),
    ...createMemorySettlementSink(store),
    ...createMemoryQueueCleaner(store),
    ...createMemoryReplayer(store),
    ...createMemoryProbeRequester(store),
  };
}
