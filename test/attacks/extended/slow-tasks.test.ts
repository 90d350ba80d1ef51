/** A bulk task on a database that is too slow for whole chunks, or even for a single delivery. */
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/domain/clock.ts';
import { newEventId, newId, type Uuid } from '../../../src/domain/ids.ts';
import { createPostgresTaskStore } from '../../../src/postgres/task-store.ts';
import { TaskRunner } from '../../../src/settle/index.ts';
import { createTestDatabase } from '../../support/database.ts';

const STATEMENT_TIMEOUT_MS = 400;
const SELECTION = {
  tenant: null,
  endpointId: null,
  statuses: ['dead'],
  type: null,
  reason: null,
  since: null,
  until: null,
  ids: null,
};

/** Dead letters whose replay takes the database this many milliseconds each, and a task that replays them all. */
async function createSlowTask(count: number, msOf: (index: number) => number) {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const pool = new pg.Pool({
    connectionString: database.url,
    options: `-c statement_timeout=${STATEMENT_TIMEOUT_MS}`,
    max: 1,
  });
  onTestFinished(() => pool.end());
  const ids = Array.from({ length: count }, () => newEventId(Date.now()));
  const [endpointId, taskId] = [newId(Date.now()), newId(Date.now())];
  await database.query(
    `insert into posthorn.endpoints (id, tenant, url, config, version) values ($1, 'acme', 'https://receiver.test/', '{}', 1)`,
    [endpointId],
  );
  await database.query(
    `insert into posthorn.dead_letters (id, endpoint_id, reason, attempts, replays, dead_at, tenant, event_type)
     select id, $2, 'exhausted', 1, 0, now(), 'acme', 'a.b' from unnest($1::uuid[]) id`,
    [ids, endpointId],
  );
  await database.query('create table public.slow (id uuid primary key, seconds float8 not null)');
  await database.query('insert into public.slow select * from unnest($1::uuid[], $2::float8[])', [
    ids,
    ids.map((_, index) => msOf(index) / 1000),
  ]);
  await database.query(`
    create function public.be_slow() returns trigger language plpgsql as $$
      begin perform pg_sleep(seconds) from public.slow s where s.id = new.id; return new; end $$`);
  await database.query(
    'create trigger be_slow before insert on posthorn.queue for each row execute function public.be_slow()',
  );
  await database.query(
    `insert into posthorn.tasks (id, kind, selection, total, created_by) values ($1, 'replay', $2, $3, 'test')`,
    [taskId, SELECTION, count],
  );
  const problems: string[] = [];
  const runner = new TaskRunner({
    tasks: createPostgresTaskStore({ pool: () => pool }),
    clock: systemClock,
    runner: newId(Date.now()),
    silentMs: 10_000,
    pollMs: 10_000,
    wake: () => {},
    onProblem: (_, error) => problems.push(String(error)),
  });
  const findTask = async (id: Uuid) =>
    (await database.query('select state, done, failed, error from posthorn.tasks where id = $1', [id]))[0];
  return { runner, problems, findTask: () => findTask(taskId) };
}

test('a task whose chunks hit the statement timeout completes with smaller chunks', async () => {
  const { runner, problems, findTask } = await createSlowTask(60, () => 10);
  while (await runner.runOnce());
  expect(problems.length).toBeGreaterThan(0);
  expect(problems.every((problem) => problem.includes('statement timeout'))).toBe(true);
  expect(await findTask()).toEqual({ state: 'done', done: 60, failed: 0, error: null });
});

test('a task with a delivery that takes longer than a statement may take fails, and says why', async () => {
  const { runner, findTask } = await createSlowTask(6, (index) => (index === 3 ? 60_000 : 0));
  while (await runner.runOnce());
  const task = await findTask();
  expect(task).toMatchObject({ state: 'failed', done: 3 });
  expect(task!.error).toBe('A single delivery takes the database longer than a statement may take.');
});
