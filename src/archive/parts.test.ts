import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import type { ArchiveKind } from '../domain/archive.ts';
import { deliveryIdOf, newEventId, newId, publicId } from '../domain/ids.ts';
import type { AttemptRow, DeliveryRow, EventRow, RowsByKind } from '../ports/archive-rows.ts';
import { withoutExpunged } from '../ports/expunged-rows.ts';
import { examineFile, readRows } from './part-reader.ts';
import { PartWriter } from './part-writer.ts';

let file: string;
beforeEach(async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'posthorn-parts-'));
  file = path.join(folder, 'part.parquet');
  onTestFinished(() => rm(folder, { recursive: true }));
});

async function readAll<K extends ArchiveKind>(kind: K): Promise<RowsByKind[K][]> {
  const found: RowsByKind[K][] = [];
  for await (const group of readRows(kind, file)) found.push(...group);
  return found;
}

const event = (more: Partial<EventRow> = {}): EventRow => ({
  id: newEventId(Date.now()),
  tenant: 'acme',
  type: 'order.paid',
  data: Buffer.from('{"n":  1}'),
  deliveries: 1,
  idempotency_key: null,
  options: null,
  ...more,
});
const delivery = (more: Partial<DeliveryRow> = {}): DeliveryRow => ({
  id: deliveryIdOf(newEventId(Date.now()), 7),
  endpoint_id: newId(Date.now()),
  status: 'delivered',
  reason: null,
  attempts: 2,
  replays: 0,
  last_status_code: 200,
  last_error_class: null,
  finished_at: '1763193600123457',
  tenant: 'acme',
  event_type: 'order.paid',
  discard: null,
  ...more,
});
const attempt = (more: Partial<AttemptRow> = {}): AttemptRow => ({
  delivery_id: deliveryIdOf(newEventId(Date.now()), 7),
  id: newId(Date.now()),
  tenant: 'acme',
  number: 1,
  started_at: '1763193600000001',
  duration_ms: 3,
  dns_ms: null,
  connect_ms: 1,
  tls_ms: null,
  first_byte_ms: 2,
  status_code: 200,
  outcome: 'delivered',
  error_class: null,
  error_message: null,
  url: 'https://example.com/ü',
  request_headers: '{}',
  response_headers: '{"a":"b"}',
  response_body: Buffer.from([0, 255, 254, 10]),
  response_truncated: false,
  trigger: 'auto',
  worker: 'w',
  ...more,
});

test('LIF-2: events come back from Parquet as they were, to the byte', async () => {
  const rows = [
    event(),
    event({ data: null, options: '{"channels": ["a"],  "x": 1}', idempotency_key: 'k' }),
    event({ data: Buffer.from([0, 255, 0, 128]), tenant: '\u{feff}bom', type: 'a.b' }),
    event({ data: Buffer.alloc(0), idempotency_key: '' }),
    event({ data: Buffer.alloc(300_000, 'x') }),
  ];
  const writer = new PartWriter('events', file);
  for (const row of rows) writer.add(row);
  const written = writer.finish();
  expect(written).toMatchObject({
    rows: 5,
    minId: rows[0]!.id,
    maxId: rows[4]!.id,
    tenants: ['acme', '\u{feff}bom'],
  });
  expect(await examineFile('events', file)).toEqual({
    rows: 5,
    bytes: written.bytes,
    sha256: written.sha256,
    rowsSha256: written.rowsSha256,
  });
  const found = await readAll('events');
  expect(found).toMatchObject(
    rows.map((row) => ({ ...row, data: row.data === null ? null : new Uint8Array(row.data) })),
  );
});

test('LIF-2: deliveries and attempts come back with microseconds', async () => {
  const deliveries = [
    delivery(),
    delivery({ status: 'discarded', reason: 'admin', discard: '{"why": null}' }),
  ];
  const writer = new PartWriter('deliveries', file);
  for (const row of deliveries) writer.add(row);
  writer.finish();
  expect(await readAll('deliveries')).toMatchObject(deliveries);

  const attempts = [attempt(), attempt({ tenant: null, response_body: null, status_code: null })];
  const other = new PartWriter('attempts', file);
  for (const row of attempts) other.add(row);
  other.finish();
  const [first, second] = await readAll('attempts');
  expect(first).toMatchObject({ ...attempts[0], response_body: new Uint8Array([0, 255, 254, 10]) });
  expect(second).toMatchObject(attempts[1]!);
});

test('LIF-3: what was expunged is removed from a row, and nothing else', () => {
  const now = Date.now();
  const none = { events: new Map(), tenants: new Map(), batches: new Set<string>() };
  const row = event({ options: '{"headers":{"a":"b"},"channels":["c"]}' });
  expect(withoutExpunged('events', row, none)).toBe(row);
  const expunged = withoutExpunged('events', row, { ...none, events: new Map([[row.id, now]]) })!;
  expect(expunged).toMatchObject({ id: row.id, data: null });
  expect(JSON.parse(expunged.options!)).toEqual({
    channels: ['c'],
    expunged_at: now,
    expunged_by: 'tombstone',
  });
  expect(withoutExpunged('events', row, { ...none, tenants: new Map([['acme', now + 60_000]]) })).toBeNull();
  // The tenant was made again later.
  expect(withoutExpunged('events', row, { ...none, tenants: new Map([['acme', now - 60_000]]) })).toBe(row);
  const about = event({
    tenant: 'posthorn',
    type: 'posthorn.circuit.opened',
    data: Buffer.from('{"tenant":"acme"}'),
  });
  expect(
    withoutExpunged('events', about, { ...none, tenants: new Map([['acme', now + 60_000]]) }),
  ).toMatchObject({
    data: null,
  });
  const sent = attempt();
  expect(
    withoutExpunged('attempts', sent, {
      ...none,
      events: new Map([[`${sent.delivery_id.slice(0, 31)}00000`, now]]),
    }),
  ).toMatchObject({ status_code: 200, response_body: null, response_headers: null });
  // The answer to a batch is stored with each event of it.
  const batch = publicId('bat', newId(now));
  const [ofBatch, ofOther] = [batch, publicId('bat', newId(now))].map((id) =>
    attempt({ request_headers: JSON.stringify({ 'user-agent': 'x', 'webhook-id': id }) }),
  );
  const expungedBatch = { ...none, batches: new Set([batch]) };
  expect(withoutExpunged('attempts', ofBatch!, expungedBatch)).toEqual({
    ...ofBatch,
    response_body: null,
    response_headers: null,
    response_truncated: false,
    error_message: null,
  });
  expect(withoutExpunged('attempts', ofOther!, expungedBatch)).toBe(ofOther);
});
