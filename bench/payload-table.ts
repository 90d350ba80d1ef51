/**
 * What payloads in a table of their own would cost: bytes per event, and time per accepted event, against payloads in the table of
 * events. ADR 27 has the figures. Run `node bench/payload-table.ts`.
 */
import { rm } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { openDirectory } from '../scripts/open-directory.ts';
import { newEventId } from '../src/domain/ids.ts';
import { startEmbeddedPostgres } from '../src/postgres/embedded/index.ts';
import { median } from './harness.ts';

const PAYLOAD_BYTES = [300, 2_000];
const BATCHES = [1, 20, 200];
const ROUNDS = 300;

const COLUMNS = 'id uuid primary key, tenant text not null, type text not null, deliveries int not null';
const SCHEMA = `
  create schema bench;
  create table bench.together (${COLUMNS}, data bytea, idempotency_key text, options json);
  create index on bench.together (tenant, id);
  create table bench.events (${COLUMNS}, idempotency_key text, options json);
  create index on bench.events (tenant, id);
  create table bench.payloads (id uuid primary key, data bytea not null)`;

const INCOMING = 'unnest($1::uuid[], $2::bytea[]) as t(id, data)';
const STATEMENTS = {
  together: `insert into bench.together (id, tenant, type, data, deliveries) select id, 'acme', 'order.created', data, 1 from ${INCOMING}`,
  apart: `with incoming as materialized (select * from ${INCOMING}),
               stored as (insert into bench.payloads (id, data) select id, data from incoming)
          insert into bench.events (id, tenant, type, deliveries) select id, 'acme', 'order.created', 1 from incoming`,
} as const;
type Way = keyof typeof STATEMENTS;
const TABLES: Readonly<Record<Way, string[]>> = {
  together: ['bench.together'],
  apart: ['bench.events', 'bench.payloads'],
};

const directory = await openDirectory('posthorn-payloads-');
const server = await startEmbeddedPostgres({ dataDir: path.join(directory, 'data') });
const client = new pg.Client({ connectionString: server.connectionString });
await client.connect();
try {
  await client.query(SCHEMA);
  for (const bytes of PAYLOAD_BYTES) await measure(bytes);
} finally {
  await client.end();
  await server.stop();
  await rm(directory, { recursive: true, force: true });
}

async function measure(bytes: number): Promise<void> {
  await client.query('truncate bench.together, bench.events, bench.payloads');
  const counts: Record<Way, number> = { together: 0, apart: 0 };
  for (const batch of BATCHES) {
    const times: Record<Way, number[]> = { together: [], apart: [] };
    // In turns, so that other work on the machine affects both.
    for (let round = 0; round < ROUNDS; round += 1)
      for (const way of round % 2 === 0
        ? (['together', 'apart'] as const)
        : (['apart', 'together'] as const)) {
        const values = [newIds(batch), newPayloads(batch, bytes)];
        const startedAt = performance.now();
        await client.query({ name: way, text: STATEMENTS[way], values });
        times[way].push(((performance.now() - startedAt) * 1000) / batch);
        counts[way] += batch;
      }
    const [together, apart] = [median(times.together), median(times.apart)];
    console.log(
      `${bytes} bytes, commits of ${batch}: ${together.toFixed(1)} µs per event together, ${apart.toFixed(1)} µs apart`,
    );
  }
  for (const way of ['together', 'apart'] as const) {
    let total = 0;
    for (const table of TABLES[way]) {
      await client.query(`vacuum full ${table}`);
      const { rows } = await client.query<{ bytes: number }>(
        'select pg_total_relation_size($1::regclass)::float8 as bytes',
        [table],
      );
      const perEvent = rows[0]!.bytes / counts[way];
      total += perEvent;
      console.log(`${bytes} bytes, ${table}: ${perEvent.toFixed(0)} bytes per event`);
    }
    console.log(`${bytes} bytes, ${way}: ${total.toFixed(0)} bytes per event`);
  }
}

function newIds(count: number): string[] {
  return Array.from({ length: count }, () => newEventId(Date.now()));
}

/** Random text, which hardly compresses. */
function newPayloads(count: number, bytes: number): Buffer[] {
  return Array.from({ length: count }, () => {
    const buffer = Buffer.alloc(bytes);
    for (let n = 0; n < bytes; n += 1) buffer[n] = 32 + Math.floor(Math.random() * 90);
    return buffer;
  });
}
