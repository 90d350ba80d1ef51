/** A machine whose clock jumps by days: Posthorn accepts and delivers as before, and says so in its log. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { newId, parsePublicId, timeOfId } from '../../src/domain/ids.ts';
import { readReadiness } from '../../src/postgres/queries/readiness.ts';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import {
  createEndpoint,
  newReceiver,
  publish,
  startTestPosthorn,
  untilDeliveries,
} from '../support/posthorn.ts';

const JUMPING_CLOCK = new URL('../chaos/jumping-clock.ts', import.meta.url).href;
const DAY_MS = 86_400_000;

/** Starts a Posthorn whose wall clock the test can set. Node loads the clock with `--import`; the program has no code for it. */
async function startWithJumpingClock() {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const directory = await mkdtemp(join(tmpdir(), 'posthorn-clock-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const clockFile = join(directory, 'clock');
  const posthorn = await startTestPosthorn({
    database,
    env: { NODE_OPTIONS: `--import ${JUMPING_CLOCK}`, CHAOS_CLOCK_FILE: clockFile },
  });
  const jumps = (): number[] =>
    [...posthorn.output().matchAll(/"jump_ms":(-?\d+)/g)].map((match) => Number(match[1]));
  let ahead = 0;
  return {
    posthorn,
    jumps,
    /** Resolves when the process has noticed the jump. */
    async setClock(aheadMs: number): Promise<void> {
      const known = jumps().length;
      await writeFile(clockFile, String(aheadMs));
      process.kill(posthorn.pid, 'SIGUSR2');
      await eventually('the jump is logged', () => jumps().length > known, { saw: posthorn.output });
      expect(Math.abs(jumps().at(-1)! - (aheadMs - ahead))).toBeLessThan(1_000);
      ahead = aheadMs;
    },
  };
}

test.each([40, -40])(
  'a clock that jumps by %d days and back ends neither ingest nor fresh deliveries',
  async (days) => {
    const { posthorn, setClock, jumps } = await startWithJumpingClock();
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant: 'acme' });
    const publishOne = async (): Promise<void> => {
      const before = Date.now();
      const { id } = await publish(posthorn, { tenant: 'acme', type: 'a.b', data: 1 });
      const idTime = timeOfId(parsePublicId('evt', id)!);
      expect(Math.abs(idTime - before)).toBeLessThan(10_000);
      await untilDeliveries(posthorn, id, 'delivered');
    };
    await publishOne();
    await setClock(days * DAY_MS);
    for (let events = 0; events < 5; events += 1) await publishOne();
    await setClock(0);
    for (let events = 0; events < 5; events += 1) await publishOne();
    expect(jumps()).toHaveLength(2);
    await posthorn.stop();
  },
);

test('a worker whose last renewal lies 40 days in the future does not count as one that delivers', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  onTestFinished(() => pool.end());
  const id = newId(Date.now());
  await database.query(
    `insert into posthorn.workers (id, name, lock_key, wire_version) values ($1, 'w1', 1, 1)`,
    [id],
  );
  await database.query('update posthorn.shards set owner = $1', [id]);
  expect(await readReadiness(pool, 8_000)).toMatchObject({ ownedShards: 256 });
  await database.query("update posthorn.workers set renewed_at = renewed_at + interval '40 days'");
  expect(await readReadiness(pool, 8_000)).toMatchObject({ ownedShards: 0 });
});
