/**
 * The parts of the accept statement that store the records of a Kafka partition exactly once. The statement locks the
 * partition's row if this process still owns it, leaves out records that are stored already, and moves the position.
 *
 * `position` is the next offset to read; `done` are offsets above it that are stored already. Usually a statement stores a
 * whole batch, and only the position moves. `done` is for batches that need several statements.
 */
import type { PartitionMark } from '../../ports/event-store.ts';
import { StoreError } from '../../ports/store-error.ts';

// A statement that waited for a takeover sees the new epoch here, because FOR UPDATE reads the row again.
export const LOCK_PARTITION = `
    owned as materialized (
      select p.id, p.position, p.done from posthorn.kafka_partitions p
       where p.id = $20::int and p.epoch = $21::bigint and (select version from current) = $1 for update
    ),`;

export const UNSTORED_OFFSETS = `and exists (
           select from owned o where ($22::bigint[])[n] >= o.position and ($22::bigint[])[n] <> all (o.done))`;

// A record that lost its idempotency key is not stored yet: it is written without the key later.
export const MOVE_POSITION = `
    stored_records as materialized (
      select count(*) as records, coalesce(array_agg(($22::bigint[])[n]), '{}') as offsets
        from incoming where key is null or id = any (array(select event_id from won))
    ),
    moved as (
      update posthorn.kafka_partitions p
         set position = case when s.records = $24::int then $23::bigint else p.position end,
             done = case when s.records = $24::int then array(select d from unnest(p.done) as d where d >= $23::bigint)
                         else p.done || s.offsets end,
             stored_at = now()
        from stored_records s, owned o where p.id = o.id
    ),`;

export const IS_OWNED = ', exists (select from owned) as is_owned';

/** Parameters 20 to 24. */
export const partitionValues = (mark: PartitionMark): unknown[] => [
  mark.partitionId,
  mark.epoch,
  `{${mark.offsets.join(',')}}`,
  mark.upTo,
  mark.batchEvents,
];

export const lostPartition = ({ partitionId }: Pick<PartitionMark, 'partitionId'>): StoreError =>
  new StoreError('fenced', `another process has taken the Kafka partition ${partitionId}`);
