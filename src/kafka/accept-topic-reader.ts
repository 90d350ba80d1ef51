/** Reads the records of the accept topic, which Posthorn wrote itself (`POSTHORN_BACKBONE=kafka`). */
import { timeOfId, type Uuid } from '../domain/ids.ts';
import type { LoggedEvent } from '../ports/event-log.ts';
import type { KafkaStore } from '../ports/kafka-store.ts';
import { decodeEvent, identifyEvent } from './accept-record.ts';
import type { KafkaRecord } from './record.ts';

export class AcceptTopicReader {
  readonly topic: string;
  readonly #deployment: string;
  readonly #store: Pick<KafkaStore, 'readDeletedTenants'>;

  constructor(topic: string, deployment: string, store: Pick<KafkaStore, 'readDeletedTenants'>) {
    this.topic = topic;
    this.#deployment = deployment;
    this.#store = store;
  }

  /** Throws `UnmappedRecordError`. */
  read(record: KafkaRecord): LoggedEvent {
    return decodeEvent(record, this.#deployment);
  }

  identify(record: KafkaRecord): { readonly id: Uuid; readonly tenant: string } | null {
    return identifyEvent(record);
  }

  /** Leaves out repeated records, and events that were published before all data of their tenant was deleted. Throws `StoreError`. */
  async select(records: readonly KafkaRecord[]): Promise<readonly KafkaRecord[]> {
    const known = records.map(identifyEvent);
    const tenants = new Set(known.flatMap((each) => (each === null ? [] : [each.tenant])));
    const deletedAt = await this.#store.readDeletedTenants([...tenants]);
    const seen = new Set<Uuid>();
    return records.filter((_record, index) => {
      const each = known[index];
      if (each == null) return true;
      const isFirst = !seen.has(each.id);
      seen.add(each.id);
      return isFirst && timeOfId(each.id) >= (deletedAt.get(each.tenant) ?? 0);
    });
  }
}
