/** The log that accepts events before they are stored: what one process appends, another one reads. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FetchPosition, KafkaClient } from '../../src/kafka/client.ts';
import { AcceptTopicReader, type KafkaEventLog, type KafkaRecord } from '../../src/kafka/index.ts';
import type { LoggedEvent } from '../../src/ports/event-log.ts';
import { newEventId } from './support/ids.ts';

export const DEPLOYMENT = 'conformance';

export interface EventLogFixture {
  readonly topic: string;
  /** Opens the log as a separate process does. */
  openLog(): Promise<KafkaEventLog>;
  openReader(): Promise<KafkaClient>;
  close(): Promise<void>;
}

const newEvent = (parts: Partial<LoggedEvent> = {}): LoggedEvent => ({
  id: newEventId(),
  tenant: 'acme',
  type: 'order.paid',
  data: Buffer.from('{"a" :1.0}'),
  idempotencyKey: null,
  schemaVersion: null,
  channels: [],
  endpointIds: null,
  deliverAt: null,
  headers: null,
  closedTenantsReadAt: null,
  ...parts,
});

export function describeEventLog(
  name: string,
  options: { readonly skip: boolean },
  createFixture: () => Promise<EventLogFixture>,
): void {
  describe(`SCL-2: the accept log in ${name}`, options, () => {
    let fixture: EventLogFixture;
    let log: KafkaEventLog;
    let reader: KafkaClient;
    let place: Pick<FetchPosition, 'topic' | 'topicId'>;

    beforeAll(async () => {
      fixture = await createFixture();
      log = await fixture.openLog();
      reader = await fixture.openReader();
      const { topics } = await reader.describe([fixture.topic]);
      place = { topic: fixture.topic, topicId: topics[0]!.id };
    });
    afterAll(() => fixture?.close());

    const endOf = async (partition: number): Promise<bigint> =>
      (await reader.listOffsets(fixture.topic, 'latest'))[partition]!;
    /** Reads up to the end of a partition. */
    const readFrom = async (partition: number, offset: bigint): Promise<KafkaRecord[]> => {
      const records: KafkaRecord[] = [];
      const end = await endOf(partition);
      for (let next = offset; next < end; ) {
        const broker = reader.leaderOf(fixture.topic, partition)!;
        const [answer] = await reader.fetch(broker, [{ ...place, partition, offset: next }]);
        expect(answer?.errorCode ?? null).toBeNull();
        records.push(...(answer?.records ?? []));
        next = answer?.nextOffset ?? next;
      }
      return records;
    };
    const topicReader = (): AcceptTopicReader =>
      new AcceptTopicReader(fixture.topic, DEPLOYMENT, { readDeletedTenants: async () => new Map() });
    const eventsIn = (records: readonly KafkaRecord[]): LoggedEvent[] =>
      records.map((record) => topicReader().read(record));

    it('has the same partitions for every process', async () => {
      const other = await fixture.openLog();
      expect(other.partitions).toBe(log.partitions);
      expect(await reader.listOffsets(fixture.topic, 'earliest')).toHaveLength(log.partitions!);
    });

    it('returns events as they were appended, in their order, as soon as they are confirmed', async () => {
      const start = await endOf(0);
      const events = [
        newEvent({ data: Buffer.from('{"ü":"\\u00fc", "b":[ ]}'), headers: { 'x-a': 'ü' } }),
        newEvent({ idempotencyKey: 'k', channels: ['eu'], deliverAt: 1_800_000_000_000 }),
        newEvent({ endpointIds: [newEventId()], schemaVersion: 'v1', closedTenantsReadAt: 5 }),
      ];
      await log.append(0, events.slice(0, 2));
      await log.append(0, events.slice(2));
      const records = await readFrom(0, start);
      expect(eventsIn(records)).toEqual(events);
      expect(records.map(({ offset }) => offset - start)).toEqual([0n, 1n, 2n]);
      for (const { timestampMs } of records) expect(Math.abs(timestampMs - Date.now())).toBeLessThan(60_000);
    });

    it('returns the rest from an offset in the middle of an append', async () => {
      const start = await endOf(0);
      const events = Array.from({ length: 20 }, () => newEvent());
      await log.append(0, events);
      expect(eventsIn(await readFrom(0, start + 13n))).toEqual(events.slice(13));
    });

    it('keeps the appends of several processes apart, and the order of each', async () => {
      const start = await endOf(1);
      const logs = [log, await fixture.openLog(), await fixture.openLog()];
      const appended = await Promise.all(
        logs.map(async (each) => {
          const batches = Array.from({ length: 5 }, () => Array.from({ length: 4 }, () => newEvent()));
          for (const batch of batches) await each.append(1, batch);
          return batches.map((batch) => batch.map(({ id }) => id));
        }),
      );
      const ids = eventsIn(await readFrom(1, start)).map(({ id }) => id);
      expect(ids).toHaveLength(60);
      for (const batches of appended) {
        const starts = batches.map((batch) => ids.indexOf(batch[0]!));
        expect(starts.map((from) => ids.slice(from, from + 4))).toEqual(batches);
        expect(starts.toSorted((a, b) => a - b)).toEqual(starts);
      }
    });

    it('contains an event twice that was appended twice, and its reader selects it once', async () => {
      const start = await endOf(0);
      const events = [newEvent(), newEvent()];
      await log.append(0, events);
      await log.append(0, events);
      const records = await readFrom(0, start);
      expect(records).toHaveLength(4);
      expect(eventsIn(await topicReader().select(records))).toEqual(events);
    });

    it('answers a fetch at the end of a partition with what is appended meanwhile, or with nothing', async () => {
      const offset = await endOf(0);
      const broker = reader.leaderOf(fixture.topic, 0)!;
      const fetchOnce = async (): Promise<readonly KafkaRecord[]> =>
        (await reader.fetch(broker, [{ ...place, partition: 0, offset }]))[0]?.records ?? [];
      expect(await fetchOnce()).toEqual([]);
      const fetching = fetchOnce();
      const event = newEvent();
      await log.append(0, [event]);
      const records = await fetching;
      expect(eventsIn(records.length === 0 ? await fetchOnce() : records)).toEqual([event]);
    });
  });
}
