import { idPrefixes, newEventId, publicId } from '../../../src/domain/ids.ts';
import type { TestDatabase } from '../database.ts';

/** Puts a record into the list of those that Posthorn has rejected. Returns its id. */
export async function insertRejectedRecord(
  database: Pick<TestDatabase, 'query'>,
  { tenant, topic = 'orders' }: { tenant: string; topic?: string },
): Promise<string> {
  const id = newEventId(Date.now());
  await database.query(
    `with known as (
       insert into posthorn.kafka_partitions (cluster, topic, topic_id, partition, position)
       values ('test', $1, $1, 0, 0) on conflict (cluster, topic, topic_id, partition) do update set position = 0 returning id
     )
     insert into posthorn.kafka_records (id, partition_id, record_offset, state, tenant, key, value, headers, recorded_at, reason)
     select $2, known.id, (select coalesce(max(record_offset), 0) + 1 from posthorn.kafka_records), 'rejected', $3,
            'key', convert_to('value of ' || $3, 'UTF8'), '[["bmFtZQ==", "dmFsdWU="]]', now(), 'type: the record has no value at $.type'
       from known`,
    [topic, id, tenant],
  );
  return publicId(idPrefixes.event, id);
}
