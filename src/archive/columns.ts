/**
 * The columns of the Parquet files. Names and ids are those of the API, so that you can search for what the API
 * shows. Every value can be converted back into the row without loss.
 */
import type { ArchiveKind } from '../domain/archive.ts';
import {
  eventIdOfDelivery,
  type IdPrefix,
  parsePublicId,
  publicId,
  timeOfId,
  type Uuid,
} from '../domain/ids.ts';
import type { AttemptRow, DeliveryRow, EventRow, RowsByKind } from '../ports/archive-rows.ts';

export type ColumnType = 'string' | 'int' | 'boolean' | 'time' | 'bytes';
/** Times are microseconds since 1970. */
export type ColumnValue = string | number | boolean | bigint | Uint8Array | null;
export type ColumnValues = Readonly<Record<string, ColumnValue>>;

export interface Column<Row> {
  readonly name: string;
  readonly type: ColumnType;
  readonly isNullable: boolean;
  /** Values hardly repeat: a dictionary would only cost memory. */
  readonly isUnique?: true;
  readonly read: (row: Row) => ColumnValue;
}

export interface KindFormat<Row> {
  readonly columns: readonly Column<Row>[];
  /** The key by which rows are divided into days and parts. */
  readonly keyOf: (row: Row) => Uuid;
  readonly keyPrefix: IdPrefix;
  readonly tenantOf: (row: Row) => string | null;
  /** About how much memory the row takes. */
  readonly sizeOf: (row: Row) => number;
  readonly toRow: (values: ColumnValues) => Row;
}

type Named<Row> = { readonly [K in keyof Row]: Row[K] extends ColumnValue ? K & string : never }[keyof Row];

function column<Row>(name: Named<Row>, type: ColumnType, isNullable: boolean): Column<Row> {
  return { name, type, isNullable, read: (row) => row[name] as ColumnValue };
}
const required = <Row>(name: Named<Row>, type: ColumnType): Column<Row> => column(name, type, false);
const nullable = <Row>(name: Named<Row>, type: ColumnType): Column<Row> => column(name, type, true);

const idColumn = <Row>(
  name: string,
  prefix: IdPrefix,
  uuidOf: (row: Row) => Uuid,
  isUnique?: true,
): Column<Row> => ({
  name,
  type: 'string',
  isNullable: false,
  ...(isUnique && { isUnique }),
  read: (row) => publicId(prefix, uuidOf(row)),
});
const timeColumn = <Row>(name: string, microsOf: (row: Row) => bigint): Column<Row> => ({
  name,
  type: 'time',
  isNullable: false,
  read: microsOf,
});

function uuidOf(prefix: IdPrefix, values: ColumnValues, name: string): Uuid {
  const id = parsePublicId(prefix, String(values[name]));
  if (id === null)
    throw new Error(`the column ${name} contains "${String(values[name])}", which is not an id`);
  return id;
}
const textOf = (values: ColumnValues, name: string): string => values[name] as string;
const lengthOf = (value: string | Uint8Array | null): number => value?.length ?? 0;

const events: KindFormat<EventRow> = {
  keyOf: ({ id }) => id,
  keyPrefix: 'evt',
  tenantOf: ({ tenant }) => tenant,
  sizeOf: ({ data, options }) => 200 + lengthOf(data) + lengthOf(options),
  columns: [
    idColumn('id', 'evt', ({ id }) => id, true),
    required('tenant', 'string'),
    required('type', 'string'),
    timeColumn('created_at', ({ id }) => BigInt(timeOfId(id)) * 1000n),
    required('deliveries', 'int'),
    nullable('idempotency_key', 'string'),
    nullable('options', 'string'),
    { ...nullable<EventRow>('data', 'bytes'), isUnique: true },
  ],
  toRow: (values) => ({ ...(values as unknown as EventRow), id: uuidOf('evt', values, 'id') }),
};

const deliveries: KindFormat<DeliveryRow> = {
  keyOf: ({ id }) => id,
  keyPrefix: 'dlv',
  tenantOf: ({ tenant }) => tenant,
  sizeOf: ({ discard }) => 400 + lengthOf(discard),
  columns: [
    idColumn('id', 'dlv', ({ id }) => id, true),
    idColumn('event_id', 'evt', ({ id }) => eventIdOfDelivery(id)),
    idColumn('endpoint_id', 'ep', ({ endpoint_id }) => endpoint_id),
    required('tenant', 'string'),
    required('event_type', 'string'),
    required('status', 'string'),
    nullable('reason', 'string'),
    required('attempts', 'int'),
    required('replays', 'int'),
    nullable('last_status_code', 'int'),
    nullable('last_error_class', 'string'),
    timeColumn('finished_at', ({ finished_at }) => BigInt(finished_at)),
    nullable('discard', 'string'),
  ],
  toRow: (values) => ({
    ...(values as unknown as DeliveryRow),
    id: uuidOf('dlv', values, 'id'),
    endpoint_id: uuidOf('ep', values, 'endpoint_id'),
    finished_at: String(values.finished_at),
  }),
};

const attempts: KindFormat<AttemptRow> = {
  keyOf: ({ delivery_id }) => delivery_id,
  keyPrefix: 'dlv',
  tenantOf: ({ tenant }) => tenant,
  sizeOf: (row) =>
    600 +
    lengthOf(row.response_body) +
    lengthOf(row.response_headers) +
    lengthOf(row.request_headers) +
    lengthOf(row.error_message) +
    lengthOf(row.url),
  columns: [
    idColumn('delivery_id', 'dlv', ({ delivery_id }) => delivery_id, true),
    idColumn('id', 'att', ({ id }) => id, true),
    idColumn('event_id', 'evt', ({ delivery_id }) => eventIdOfDelivery(delivery_id)),
    nullable('tenant', 'string'),
    required('number', 'int'),
    timeColumn('started_at', ({ started_at }) => BigInt(started_at)),
    required('duration_ms', 'int'),
    nullable('dns_ms', 'int'),
    nullable('connect_ms', 'int'),
    nullable('tls_ms', 'int'),
    nullable('first_byte_ms', 'int'),
    nullable('status_code', 'int'),
    required('outcome', 'string'),
    nullable('error_class', 'string'),
    nullable('error_message', 'string'),
    required('url', 'string'),
    required('request_headers', 'string'),
    nullable('response_headers', 'string'),
    nullable('response_body', 'bytes'),
    required('response_truncated', 'boolean'),
    required('trigger', 'string'),
    required('worker', 'string'),
  ],
  toRow: (values) => ({
    ...(values as unknown as AttemptRow),
    delivery_id: uuidOf('dlv', values, 'delivery_id'),
    id: uuidOf('att', values, 'id'),
    started_at: String(values.started_at),
    request_headers: textOf(values, 'request_headers'),
  }),
};

const FORMATS: { readonly [K in ArchiveKind]: KindFormat<RowsByKind[K]> } = { events, deliveries, attempts };

export const formatOf = <K extends ArchiveKind>(kind: K): KindFormat<RowsByKind[K]> =>
  FORMATS[kind] as KindFormat<RowsByKind[K]>;
