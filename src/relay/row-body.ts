/**
 * Turns a row of the outbox table into a body for `POST /v1/events`, so that rows are read and validated by the same
 * code as requests. `data` and `headers` are JSON text already and are inserted unchanged.
 */
import { parseTextArray } from '../postgres/source-database.ts';

type Columns = ReadonlyMap<string, string | Buffer | null>;

const TEXTS = ['type', 'tenant', 'idempotency_key', 'schema_version'] as const;
const LISTS = ['channels', 'endpoint_ids'] as const;

export function bodyOfRow(columns: Columns): Buffer {
  const text = (name: string): string | null => columns.get(name)?.toString() ?? null;
  const fields: string[] = [];
  const put = (name: string, json: string | null): void => {
    if (json !== null) fields.push(`"${name}":${json}`);
  };
  for (const name of TEXTS) put(name, quoted(text(name)));
  for (const name of LISTS) {
    const list = text(name);
    put(name, list === null ? null : JSON.stringify(parseTextArray(list)));
  }
  put('deliver_at', quoted(toRfc3339(text('deliver_at'))));
  put('headers', text('headers'));
  const data = columns.get('data') ?? null;
  if (data === null) return Buffer.from(`{${fields.join(',')}}`);
  const before = `{${fields.join(',')}${fields.length > 0 ? ',' : ''}"data":`;
  return Buffer.concat([
    Buffer.from(before),
    typeof data === 'string' ? Buffer.from(data) : data,
    Buffer.from('}'),
  ]);
}

/** When the row was created, or NaN if `created_at` is missing. */
export function createdAtOfRow(columns: Columns): number {
  return Date.parse(toRfc3339(columns.get('created_at')?.toString() ?? null) ?? '');
}

const quoted = (text: string | null): string | null => (text === null ? null : JSON.stringify(text));

/** From PostgreSQL's form in UTC, `2027-01-31 12:00:00.5+00`. Other text ("infinity") stays and is rejected later. */
function toRfc3339(text: string | null): string | null {
  return text === null ? null : text.replace(' ', 'T').replace(/\+00$/, 'Z');
}
