/** LIF-2: the archive holds a row group in memory, not a file. `node scripts/archive-memory.ts` measures with more rows. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { type MemoryFigure, measureArchiveMemory } from '../../bench/archive-memory.ts';
import { fillExpired } from '../../bench/fill-expired.ts';
import { firstIdAt, newId } from '../../src/domain/ids.ts';
import { newArchive } from '../support/archive-folder.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { NOT_LINUX, needs } from '../support/needs.ts';
import { MAIN } from '../support/posthorn.ts';
import { createDay, startOfDay } from '../support/retention.ts';

/** `query` is a command of a person, with the young generation that Node gives it by default. */
const limitOf = (command: string): number => (command === 'archive query' ? 350 : 300);
/** Noise of the garbage collector. A file that is held in memory would add hundreds. */
const SLACK_MB = 150;

async function newDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  return database;
}

async function measure(database: TestDatabase, partition: string): Promise<MemoryFigure[]> {
  const figures: MemoryFigure[] = [];
  for await (const figure of measureArchiveMemory({
    query: database.query,
    databaseUrl: database.url,
    archiveUrl: (await newArchive()).url,
    program: MAIN,
    partition,
  }))
    figures.push(figure);
  return figures;
}

describe('LIF-2: the memory of the archive', { ...needs(NOT_LINUX), timeout: 900_000 }, () => {
  test('does not grow with the number of rows: export, verify, query', async () => {
    const peaks: MemoryFigure[][] = [];
    for (const rows of [200_000, 800_000]) {
      const database = await newDatabase();
      const partition = await fillExpired(database.query, { rows, dataBytes: 300 }, () => {});
      peaks.push(await measure(database, partition));
    }
    const [few, many] = peaks as [MemoryFigure[], MemoryFigure[]];
    for (const [n, { command, peakMb }] of many.entries()) {
      expect(peakMb, command).toBeLessThan(limitOf(command));
      expect(peakMb - few[n]!.peakMb, `${command}: growth`).toBeLessThan(SLACK_MB);
    }
  });

  test('does not grow with the size of payloads', async () => {
    const database = await newDatabase();
    const partition = await fillExpired(database.query, { rows: 1_000, dataBytes: 250_000 }, () => {});
    for (const { command, peakMb } of await measure(database, partition))
      expect(peakMb, command).toBeLessThan(limitOf(command));
  });

  test('does not grow with the size of headers', async () => {
    const database = await newDatabase();
    const dayMs = startOfDay(50);
    await createDay(database, dayMs);
    const prefix = firstIdAt(dayMs + 3_600_000).slice(0, 13);
    const id = `('${prefix}-8000-8000-' || lpad(to_hex(n), 7, '0') || '00000')::uuid`;
    // 5,000 attempts with 40 kB of headers each, 20 kB of them from the receiver.
    await database.query(
      `insert into posthorn.attempts (delivery_id, id, number, started_at, duration_ms, status_code, outcome, url, request_headers,
                                      response_headers, response_truncated, trigger, worker)
       select ${id}, $1::uuid, 1, to_timestamp($2::float8), 5, 500, 'retry', 'http://127.0.0.1/', h.text, h.text, false, 'auto', 'test'
         from generate_series(1, 5000) n,
              lateral (select '{"a":"' || string_agg(md5((n * 1000 + m)::text), '') || '"}' as text from generate_series(1, 625) m) h`,
      [newId(dayMs), dayMs / 1000 + 4_000],
    );
    const [partition] = await database.query<{ name: string }>(
      "select name from posthorn.partitions where parent = 'attempts' and from_at = to_timestamp($1)",
      [dayMs / 1000],
    );
    for (const { command, peakMb } of await measure(database, partition!.name))
      expect(peakMb, command).toBeLessThan(limitOf(command));
  });
});
