/** Reads the records of the accept topic, which Posthorn wrote itself (`POSTHORN_BACKBONE=kafka`). */
import type { Uuid } from '../domain/ids.ts';
import type { LoggedEvent } from '../ports/event-log.ts';
import type { KafkaStore } from '../ports/kafka-store.ts';
import { decodeEvent, type EventIdentity, identifyEvent, isOfDeployment } from './accept-record.ts';
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

  identify(record: KafkaRecord): EventIdentity | null {
    return identifyEvent(record);
  }

  /** True if a client of this deployment may have got 202 for the record. */
  isOwn(record: KafkaRecord): boolean {
    return isOfDeployment(record, this.#deployment);
  }

  /**
   * Leaves out repeated records, and events that were published before the deletion of all data of their tenant ended. Ids are not
   * compared: they have the time of a node, which may be wrong. An event is kept if the node had read the list of closed
   * tenants after the deletion ended (both times are the store's), or if the broker got the record after that. Throws `StoreError`.
   */
  async select(records: readonly KafkaRecord[]): Promise<readonly KafkaRecord[]> {
    const known = records.map(identifyEvent);
    const tenants = new Set(known.flatMap((each) => (each === null ? [] : [each.tenant])));
    const deletedAt = await this.#store.readDeletedTenants([...tenants]);
    const seen = new Set<Uuid>();
    return records.filter(({ timestampMs }, index) => {
      const each = known[index];
      if (each == null) return true;
      const isFirst = !seen.has(each.id);
      seen.add(each.id);
      return (
        isFirst && Math.max(timestampMs, each.closedTenantsReadAt ?? 0) >= (deletedAt.get(each.tenant) ?? 0)
      );
    });
  }
}
