import { afterAll, beforeAll, describe } from 'vitest';
import { describeBatchLog } from './batch-log.ts';
import { describeDebouncer } from './debouncer.ts';
import { describeLaneReader } from './lane-reader.ts';
import { describeProbes } from './probes.ts';
import { describeQueueCleaner } from './queue-cleaner.ts';
import { describeReplayer } from './replayer.ts';
import { describeSettlementSink } from './settlement-sink.ts';
import { describeStartRecorder } from './start-recorder.ts';
import type { CreateStoreFixture, StoreFixture } from './support/fixture.ts';
import { takeAllShards } from './support/records.ts';

/** The parts of the port, on one store in which `WORKER` owns every shard. */
export function describeDeliveryQueue(
  name: string,
  createFixture: CreateStoreFixture,
  options: { readonly propertyRuns: number },
): void {
  describe(`the delivery queue in ${name}`, () => {
    let fixture: StoreFixture;
    beforeAll(async () => {
      fixture = await createFixture();
      await takeAllShards(fixture);
    });
    afterAll(() => fixture?.close());

    const store = () => fixture;
    describeLaneReader(store);
    describeStartRecorder(store);
    describeBatchLog(store);
    describeDebouncer(store, options.propertyRuns);
    describeSettlementSink(store);
    describeQueueCleaner(store);
    describeReplayer(store);
    describeProbes(store);
  });
}
