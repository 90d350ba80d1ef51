import { Type } from 'typebox';
import { PageQuery } from '../http/pagination.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, Time } from '../openapi/describe.ts';

const topicFilter = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: 249,
    description: 'Selects only records of this topic.',
    examples: ['orders'],
  }),
);

const PartitionSchema = Type.Object({
  topic: Type.String(),
  partition: Type.Integer(),
  position: Type.Integer({ description: 'The offset of the next record to read.' }),
  log_end: Nullable(
    Type.Integer({
      description: 'The end of the partition, as Posthorn last saw it. Null: it was not read yet.',
    }),
  ),
  lag: Type.Integer({
    description: 'Records that Posthorn has not read yet. Waiting and rejected records do not count.',
  }),
  waiting: Type.Integer({
    description:
      'Records that were read and wait to be stored: their tenant is over its publish limit, or an operator retries them. Counted up to 10,000.',
  }),
  rejected: Type.Integer({ description: 'Records that cannot become events. Counted up to 10,000.' }),
  lost: Type.Integer({ description: 'Records that Kafka deleted before Posthorn read them.' }),
  owner: Nullable(Type.String({ description: 'The process that reads it. Null: none.' })),
  paused_reason: Nullable(
    Type.String({
      description:
        'Why it is not read now: `overflow_full`, `rejected_full`, `batch_too_large`, `records_refused`, `position_beyond_end`, or `topic_removed` (the topic was deleted or is not in the settings, and records of it are waiting or rejected).',
    }),
  ),
  seen_at: Nullable(
    Type.Unsafe<Date>({
      type: 'string',
      format: 'date-time',
      description: 'When Kafka last answered for this partition.',
    }),
  ),
});

export const SourcesSchema = Type.Object(
  {
    kafka: Type.Object({
      topics: Type.Array(Type.String(), { description: 'POSTHORN_KAFKA_SOURCE_TOPICS' }),
      partitions: Type.Array(PartitionSchema),
    }),
  },
  {
    title: 'Sources',
    examples: [
      {
        kafka: {
          topics: ['orders'],
          partitions: [
            {
              topic: 'orders',
              partition: 0,
              position: 1200,
              log_end: 1210,
              lag: 10,
              waiting: 0,
              rejected: 1,
              lost: 0,
              owner: 'node-1:4711',
              paused_reason: null,
              seen_at: EXAMPLE_TIME,
            },
          ],
        },
      },
    ],
  },
);

const summary = {
  id: Id('evt', 'The id of the event that the record becomes when it is retried.'),
  topic: Type.String(),
  partition: Type.Integer(),
  offset: Type.Integer(),
  tenant: Nullable(Type.String({ description: 'Null: unknown.' })),
  reason: Type.String({ description: 'Why it cannot become an event.' }),
  recorded_at: Time,
  rejected_at: Time,
};

const example = {
  id: exampleId('evt'),
  topic: 'orders',
  partition: 0,
  offset: 1199,
  tenant: null,
  reason: 'type: the record has no value at $.type',
  recorded_at: EXAMPLE_TIME,
  rejected_at: EXAMPLE_TIME,
};

export const RejectedRecordSchema = Type.Object(summary, { title: 'RejectedRecord', examples: [example] });

export const RejectedRecordDetails = Type.Object(
  {
    ...summary,
    key: Nullable(Type.String({ description: 'The key of the record, as text.' })),
    value: Nullable(Type.String({ description: 'The value of the record, as text.' })),
    headers: Type.Array(Type.Object({ name: Type.String(), value: Nullable(Type.String()) })),
  },
  {
    title: 'RejectedRecordDetails',
    examples: [
      { ...example, key: 'order-7', value: '{"n": 1}', headers: [{ name: 'source', value: 'shop' }] },
    ],
  },
);

export const RejectedList = Type.Object(
  { topic: topicFilter, ...PageQuery },
  { additionalProperties: false },
);

export const RetryRejected = Type.Object(
  { topic: topicFilter },
  { title: 'RetryRejected', additionalProperties: false, examples: [{ topic: 'orders' }] },
);

export const RetriedSchema = Type.Object(
  {
    count: Type.Integer({
      description: 'How many are retried. At most 10,000 at a time: repeat while it is 10,000.',
    }),
  },
  { title: 'RetriedRecords', examples: [{ count: 12 }] },
);
