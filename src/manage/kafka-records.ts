/** Kafka records that could not become events: an operator retries or discards them. */
import { idPrefixes, publicId, type Uuid } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import { inTransaction, type Pool } from '../postgres/database.ts';
import {
  discardRejectedRecord,
  findRejectedRecord,
  type RejectedRecord,
  retryRejectedRecords,
} from '../postgres/queries/kafka-rejected.ts';
import type { Actor } from './caller.ts';

/** How many records one call retries. */
const MAX_RETRIED = 10_000;

export class KafkaRecords {
  readonly #pool: Pool;

  constructor({ pool }: { readonly pool: Pool }) {
    this.#pool = pool;
  }

  /** Throws `not_found` if no rejected record has this id. */
  async get(id: Uuid): Promise<RejectedRecord> {
    const record = await findRejectedRecord(this.#pool, id);
    if (record === null) throw unknownRecord(id);
    return record;
  }

  /** The process that reads the record's partition maps it again, with its current settings. */
  async retry({ audit }: Actor, id: Uuid): Promise<RejectedRecord> {
    const record = await this.get(id);
    await inTransaction(this.#pool, async (client) => {
      if ((await retryRejectedRecords(client, { ids: [id], topic: null, max: 1 })) === 0)
        throw unknownRecord(id);
      await audit.record(client, { action: 'kafka_record.retry', ...subjectOf(record) });
    });
    return record;
  }

  /** Retries the oldest rejected records of a topic, or of all. Returns how many. */
  async retryMany({ audit }: Actor, topic: string | null): Promise<number> {
    return inTransaction(this.#pool, async (client) => {
      const count = await retryRejectedRecords(client, { ids: null, topic, max: MAX_RETRIED });
      if (count > 0)
        await audit.record(client, {
          action: 'kafka_record.retry',
          tenant: null,
          objectId: topic ?? 'kafka',
          changes: [{ field: 'count', after: count }],
        });
      return count;
    });
  }

  /** Deletes a rejected record: it never becomes an event. */
  async discard({ audit }: Actor, id: Uuid): Promise<void> {
    const record = await this.get(id);
    await inTransaction(this.#pool, async (client) => {
      if (!(await discardRejectedRecord(client, id))) throw unknownRecord(id);
      await audit.record(client, { action: 'kafka_record.discard', ...subjectOf(record) });
    });
  }
}

const subjectOf = ({ id, tenant, topic, partition, offset }: RejectedRecord) => ({
  tenant,
  objectId: publicId(idPrefixes.event, id),
  changes: [{ field: 'record', after: `${topic}/${partition}/${offset}` }],
});

const unknownRecord = (id: Uuid): Problem =>
  new Problem('not_found', `There is no rejected record ${publicId(idPrefixes.event, id)}.`);
