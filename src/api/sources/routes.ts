import type { FastifyPluginAsync } from 'fastify';
import type { Static } from 'typebox';
import { idPrefixes, parsePublicId, publicId, type Uuid } from '../../domain/ids.ts';
import { Problem } from '../../domain/problem.ts';
import type { KafkaRecords } from '../../manage/kafka-records.ts';
import type { Pool } from '../../postgres/database.ts';
import { listRejectedRecords, type RejectedRecord } from '../../postgres/queries/kafka-rejected.ts';
import { type KafkaPartitionStatus, listKafkaPartitions } from '../../postgres/queries/kafka-status.ts';
import { DEFAULT_LIMIT, readCursor, toPage } from '../http/pagination.ts';
import { idParams, Nothing, Page, type Shown } from '../openapi/describe.ts';
import {
  RejectedList,
  RejectedRecordDetails,
  RejectedRecordSchema,
  RetriedSchema,
  RetryRejected,
  SourcesSchema,
} from './schema.ts';

const RecordId = idParams('evt', 'rejected record');
type ById = { Params: Static<typeof RecordId> };

export interface SourcesContext {
  readonly pool: Pool;
  readonly kafkaTopics: readonly string[];
}

export function sourceRoutes(
  records: KafkaRecords,
  { pool, kafkaTopics }: SourcesContext,
): FastifyPluginAsync {
  return async (server) => {
    server.get(
      '/sources',
      {
        schema: {
          operationId: 'getSources',
          summary: 'Show how far Kafka topics are read',
          tags: ['Sources'],
          response: { 200: SourcesSchema },
        },
        config: { admin: true },
      },
      async () => showSources(kafkaTopics, await listKafkaPartitions(pool, kafkaTopics)),
    );

    server.get<{ Querystring: Static<typeof RejectedList> }>(
      '/sources/kafka/rejected',
      {
        schema: {
          operationId: 'listRejectedRecords',
          summary: 'List Kafka records that cannot become events',
          tags: ['Sources'],
          querystring: RejectedList,
          response: { 200: Page(RejectedRecordSchema) },
        },
        config: { admin: true },
      },
      async ({ query: { limit = DEFAULT_LIMIT, cursor, topic = null } }) => {
        const before = readCursor(idPrefixes.event, cursor);
        const rows = await listRejectedRecords(pool, { topic, before, limit: limit + 1 });
        return toPage(rows, limit, idPrefixes.event, showRecord);
      },
    );

    server.post<{ Body: Static<typeof RetryRejected> }>(
      '/sources/kafka/rejected/retry',
      {
        schema: {
          operationId: 'retryRejectedRecords',
          summary: 'Retry all rejected Kafka records, or those of a topic',
          description:
            'Use it for example after you changed the mapping. Posthorn starts with the oldest records.',
          tags: ['Sources'],
          body: RetryRejected,
          response: { 200: RetriedSchema },
        },
        config: { admin: true },
      },
      async (request) => ({ count: await records.retryMany(request, request.body.topic ?? null) }),
    );

    server.get<ById>(
      '/sources/kafka/rejected/:id',
      {
        schema: {
          operationId: 'getRejectedRecord',
          summary: 'Show a rejected Kafka record with its value',
          tags: ['Sources'],
          params: RecordId,
          response: { 200: RejectedRecordDetails },
        },
        config: { admin: true },
      },
      async ({ params: { id } }) => showDetails(await records.get(readRecordId(id))),
    );

    server.post<ById>(
      '/sources/kafka/rejected/:id/retry',
      {
        schema: {
          operationId: 'retryRejectedRecord',
          summary: 'Retry a rejected Kafka record',
          description:
            'The process that reads its partition maps it again. If it fails again, it is rejected again.',
          tags: ['Sources'],
          params: RecordId,
          response: { 202: RejectedRecordSchema },
        },
        config: { admin: true },
      },
      async (request, reply) =>
        reply.code(202).send(showRecord(await records.retry(request, readRecordId(request.params.id)))),
    );

    server.delete<ById>(
      '/sources/kafka/rejected/:id',
      {
        schema: {
          operationId: 'discardRejectedRecord',
          summary: 'Discard a rejected Kafka record',
          description: 'It is deleted and never becomes an event.',
          tags: ['Sources'],
          params: RecordId,
          response: { 204: Nothing },
        },
        config: { admin: true },
      },
      async (request, reply) => {
        await records.discard(request, readRecordId(request.params.id));
        return reply.code(204).send();
      },
    );
  };
}

function readRecordId(text: string): Uuid {
  const id = parsePublicId(idPrefixes.event, text);
  if (id === null) throw new Problem('not_found', `There is no rejected record ${text}.`);
  return id;
}

function showSources(
  topics: readonly string[],
  partitions: readonly KafkaPartitionStatus[],
): Shown<typeof SourcesSchema> {
  return {
    kafka: {
      topics,
      partitions: partitions.map(
        ({ logEnd, pausedReason, seenAt, isCurrent: _, unseenSince: __, ...each }) => ({
          ...each,
          log_end: logEnd,
          paused_reason: pausedReason,
          seen_at: seenAt,
        }),
      ),
    },
  };
}

function showRecord(record: RejectedRecord): Shown<typeof RejectedRecordSchema> {
  return {
    id: publicId(idPrefixes.event, record.id),
    topic: record.topic,
    partition: record.partition,
    offset: Number(record.offset),
    tenant: record.tenant,
    reason: record.reason,
    recorded_at: record.recordedAt,
    rejected_at: record.rejectedAt,
  };
}

function showDetails(record: RejectedRecord): Shown<typeof RejectedRecordDetails> {
  return {
    ...showRecord(record),
    key: record.key?.toString() ?? null,
    value: record.value?.toString() ?? null,
    headers: record.headers.map(([name, value]) => ({ name, value: value?.toString() ?? null })),
  };
}
