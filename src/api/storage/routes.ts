import type { FastifyPluginAsync } from 'fastify';
import { Type } from 'typebox';
import { DAY_MS } from '../../domain/retention.ts';
import { type StorageKind, storageKinds } from '../../domain/storage.ts';
import type { StorageReport } from '../../manage/storage.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, type Shown, Time } from '../openapi/describe.ts';

const KindSchema = Type.Object({
  bytes: Type.Integer({ description: 'The size on disk, with indexes.' }),
  rows: Type.Integer({ description: "PostgreSQL's estimate." }),
  oldest_at: Nullable(Time),
  days_kept: Type.Number({ description: 'The age of the oldest, in days.' }),
  retention_days: Nullable(
    Type.Number({
      description:
        'The retention of this kind in days. Null: Posthorn keeps it forever, keeps it until a person replays or discards it (dead letters), or deletes it by a setting that is not in days (idempotency keys).',
    }),
  ),
});

const exampleKind = {
  bytes: 1_300_000_000,
  rows: 1_000_000,
  oldest_at: EXAMPLE_TIME,
  days_kept: 30.5,
  retention_days: 90,
};

export const StorageSchema = Type.Object(
  {
    kinds: Type.Object(
      Object.fromEntries(storageKinds.map((kind) => [kind, KindSchema])) as Record<
        StorageKind,
        typeof KindSchema
      >,
    ),
    database_bytes: Type.Integer({ description: 'The whole database.' }),
    bytes_per_event: Nullable(
      Type.Number({ description: 'Events, deliveries and attempts, per event. Null: not known yet.' }),
    ),
    bytes_per_day: Nullable(Type.Number({ description: 'The current growth. Null: not known yet.' })),
    disk: Nullable(
      Type.Object(
        { total_bytes: Type.Integer(), free_bytes: Type.Integer() },
        { description: 'Null: this server cannot see the file system of the database.' },
      ),
    ),
    full_at: Nullable(
      Type.Unsafe<Date>({
        type: 'string',
        format: 'date-time',
        description:
          'When the disk is full at the current rate. Null: unknown, or retention sets in before that.',
      }),
    ),
    dead_letters_expired: Type.Integer({
      description: 'How many dead letters retention discarded in the last 30 days.',
    }),
    overdue_seconds: Type.Number({
      description: 'How long ago the oldest expired partition should have been dropped. 0: none is overdue.',
    }),
  },
  {
    title: 'Storage',
    examples: [
      {
        kinds: Object.fromEntries(storageKinds.map((kind) => [kind, exampleKind])),
        database_bytes: 4_000_000_000,
        bytes_per_event: 1300,
        bytes_per_day: 43_000_000,
        disk: { total_bytes: 100_000_000_000, free_bytes: 60_000_000_000 },
        full_at: null,
        dead_letters_expired: 0,
        overdue_seconds: 0,
      },
    ],
  },
);

export function storageRoutes(read: () => Promise<StorageReport>, now: () => number): FastifyPluginAsync {
  return async (server) => {
    server.get(
      '/storage',
      {
        schema: {
          operationId: 'getStorage',
          summary: 'How much is stored, how long it is kept, and when the disk is full',
          tags: ['Service'],
          response: { 200: StorageSchema },
        },
        config: { admin: true },
      },
      async () => showStorage(await read(), now()),
    );
  };
}

function showStorage(report: StorageReport, now: number): Shown<typeof StorageSchema> {
  const kinds = Object.entries(report.kinds).map(([kind, { bytes, rows, oldestAt, retentionDays }]) => [
    kind,
    {
      bytes,
      rows,
      oldest_at: oldestAt === null ? null : new Date(oldestAt),
      days_kept: oldestAt === null ? 0 : Math.max(0, Math.round(((now - oldestAt) / DAY_MS) * 100) / 100),
      retention_days: retentionDays,
    },
  ]);
  return {
    kinds: Object.fromEntries(kinds) as Shown<typeof StorageSchema>['kinds'],
    database_bytes: report.databaseBytes,
    bytes_per_event: report.bytesPerEvent === null ? null : Math.round(report.bytesPerEvent),
    bytes_per_day: report.bytesPerDay === null ? null : Math.round(report.bytesPerDay),
    disk: report.disk && { total_bytes: report.disk.totalBytes, free_bytes: report.disk.freeBytes },
    full_at: report.fullAt === null ? null : new Date(report.fullAt),
    dead_letters_expired: report.deadLettersExpired,
    overdue_seconds: report.overdueMs / 1000,
  };
}
