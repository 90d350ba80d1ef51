import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { dayOf, type Manifest } from '../../src/domain/archive.ts';
import { parsePublicId, publicId } from '../../src/domain/ids.ts';
import { archiveAll, dropArchived } from '../support/archive.ts';
import { newArchive } from '../support/archive-folder.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { filesIn, oldEventsIn, queryFiles } from '../support/old-events.ts';
import { createEndpoint, expectStatus, newReceiver, startTestPosthorn } from '../support/posthorn.ts';
import { createDay, startOfDay } from '../support/retention.ts';

let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabase();
  onTestFinished(() => database.drop());
});

const { store, countOf, failureOf } = oldEventsIn(() => database);

describe('LIF-2: archive', () => {
  test('a partition is dropped only after it was exported and verified, and DuckDB reads the files as they are', async () => {
    const { folder, url } = await newArchive();
    const data = '{"order_id": "ord_1",  "total":"59.90", "name":"Zoë \\u0000"}';
    const day = dayOf(startOfDay(50));
    await createDay(database, startOfDay(50));
    await createDay(database, startOfDay(49));
    const event = await store(50, 'delivered', { data });
    for (const status of ['dead', 'waiting', 'skipped'] as const) await store(50, status);
    await store(49, 'delivered', { tenant: 'other' });

    // Without an archive nothing is dropped.
    expect(await dropArchived(database)).toEqual([]);
    expect(await countOf('deliveries')).toBe(3);
    const dropped = await archiveAll(database, { url });
    expect(dropped.filter((name) => !name.includes('kept'))).toHaveLength(6);
    // The dead letter and the waiting delivery stay with their events.
    expect(await countOf('events')).toBe(2);
    expect(await failureOf()).toBeNull();
    expect(await filesIn(folder)).toEqual([
      'archive.json',
      ...['attempts', 'deliveries', 'events'].flatMap((kind) =>
        [day, dayOf(startOfDay(49))].flatMap((each) => [
          `${kind}/day=${each}/manifest.json`,
          `${kind}/day=${each}/part-0000.parquet`,
        ]),
      ),
    ]);

    const events = await queryFiles(
      `select id, tenant, type, decode(data) as data, octet_length(data) as bytes, created_at::varchar as created_at, day::varchar as day
         from '${folder}/events/*/*.parquet' order by id`,
    );
    expect(events).toHaveLength(5);
    expect(events[0]).toEqual({
      id: publicId('evt', event.id),
      tenant: 'acme',
      type: 'order.paid',
      data,
      bytes: String(Buffer.byteLength(data)),
      created_at: expect.stringMatching(new RegExp(`^${day} 01:00:00`)),
      day,
    });
    const joined = await queryFiles(
      `select e.id, d.status, a.status_code, a.tenant from '${folder}/events/*/*.parquet' e
         left join '${folder}/deliveries/*/*.parquet' d on d.event_id = e.id
         join '${folder}/attempts/*/*.parquet' a on a.event_id = e.id where e.day = '${day}' order by e.id`,
    );
    expect(joined.map(({ status }) => status)).toEqual(['delivered', null, null, 'skipped']);
    expect(joined[0]).toMatchObject({ status_code: 500, tenant: 'acme' });
    const types = await queryFiles(
      `select column_name as name, column_type as type from (describe select * from '${folder}/attempts/*/*.parquet')`,
    );
    expect(Object.fromEntries(types.map(({ name, type }) => [name, type]))).toMatchObject({
      started_at: 'TIMESTAMP WITH TIME ZONE',
      duration_ms: 'INTEGER',
      response_truncated: 'BOOLEAN',
      response_body: 'BLOB',
      url: 'VARCHAR',
    });

    const manifest = JSON.parse(
      await readFile(path.join(folder, `events/day=${day}/manifest.json`), 'utf8'),
    ) as Manifest;
    expect(manifest).toMatchObject({
      schema_version: 1,
      kind: 'events',
      day,
      rows: 4,
      files: [{ name: 'part-0000.parquet', rows: 4, min_id: publicId('evt', event.id) }],
    });
    const tasks = await database.query(
      "select state, done, total from posthorn.tasks where kind = 'archive'",
    );
    expect(tasks).toHaveLength(6);
    expect(tasks).toContainEqual({ state: 'done', done: 4, total: 4 });
  });

  test('a server archives by itself, answers 410, and brings events back without what was expunged', async () => {
    const { url } = await newArchive();
    const receiver = await newReceiver();
    const posthorn = await startTestPosthorn({
      database,
      env: { POSTHORN_ARCHIVE_URL: url, POSTHORN_RETENTION_EVENTS: '30', POSTHORN_UPKEEP_MS: '200ms' },
    });
    onTestFinished(() => posthorn.stop());
    const { api } = posthorn;
    // Servers that lack the setting must wait for the archive too.
    expect(await database.query('select is_required from posthorn.archive_state')).toEqual([
      { is_required: true },
    ]);
    const endpoint = await createEndpoint(posthorn, { url: receiver.url, tenant: 'acme' });
    const key = (await expectStatus(api('POST', '/v1/keys', { scope: 'tenant', tenant: 'acme' }), 201)).body
      .key;
    await createDay(database, startOfDay(50));
    const target = parsePublicId('ep', endpoint.id)!;
    const [event, secret] = [
      await store(50, 'delivered', { endpointId: target, data: '{"n": 1}' }),
      await store(50, 'delivered', { endpointId: target, data: '{"private":true}' }),
    ];
    const paths = [event, secret].map(({ id }) => `/v1/events/${publicId('evt', id)}`);
    await eventually('the events are archived', async () => (await api('GET', paths[0]!)).status === 410, {
      timeoutMs: 60_000,
    });
    const archived = await api('GET', paths[0]!);
    expect(archived.body).toMatchObject({ status: 410, code: 'archived' });
    expect(archived.body.detail).toContain(`${url}/events/day=${dayOf(startOfDay(50))}/part-0000.parquet`);
    expect((await api('GET', paths[0]!, undefined, { key })).body.detail).not.toContain(url);
    // A key of a tenant that has nothing in the file learns nothing.
    const stranger = (await expectStatus(api('POST', '/v1/keys', { scope: 'tenant', tenant: 'other' }), 201))
      .body;
    await expectStatus(api('GET', paths[0]!, undefined, { key: stranger.key }), 404);

    const expunged = await expectStatus(api('DELETE', `${paths[1]}/payload`), 204);
    expect(Date.parse(String(expunged.headers['posthorn-archive-until']))).toBeGreaterThan(Date.now());

    const order = { day: dayOf(startOfDay(50)) };
    const { body: task } = await expectStatus(api('POST', '/v1/archive/restore', order), 202);
    expect(task).toMatchObject({ kind: 'restore', state: 'queued' });
    await eventually(
      'the day is restored',
      async () => {
        const { body } = await api('GET', `/v1/tasks/${task.id}`);
        expect(body.error).toBeNull();
        return body.state === 'done';
      },
      { timeoutMs: 60_000 },
    );
    const { text, body } = await expectStatus(api('GET', paths[0]!), 200);
    expect(text).toContain('"data":{"n": 1}');
    expect(body.outcome).toMatchObject({ delivered: 1 });
    expect((await api('GET', `${paths[0]}/attempts`)).body.data).toHaveLength(1);
    expect((await api('GET', paths[1]!)).body).toMatchObject({ data: null, expunged_by: 'tombstone' });
    await expectStatus(api('POST', `${paths[0]}/replay`, {}), 202);
    await receiver.waitFor(1);
    expect(receiver.requests[0]!.json()).toMatchObject({ data: { n: 1 } });
    // Upkeep has run many times since, and left it alone.
    await expectStatus(api('GET', paths[0]!), 200);
    expect(await countOf('restored_ranges')).toBe(1);
  });
});
