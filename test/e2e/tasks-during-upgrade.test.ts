/** LIF-2: while the previous release runs beside this one, it must not work on tasks that it does not know. */
import { randomUUID } from 'node:crypto';
import { afterAll, expect, test } from 'vitest';
import type { Uuid } from '../../src/domain/ids.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { claimTask, type TaskKind, taskKinds } from '../../src/postgres/queries/tasks.ts';
import { createTestDatabase } from '../support/database.ts';

const database = await createTestDatabase();
const own = openDatabase({
  connectionString: database.url,
  apiConnections: 1,
  dispatchConnections: 1,
  onIdleError: () => {},
});
afterAll(async () => {
  await own.close();
  await database.drop();
});

/** The statement of the previous release: it claims every kind, and discards deliveries for all but `replay`. */
const claimAsPreviousRelease = (): Promise<{ kind: TaskKind }[]> =>
  database.query(
    `with free as materialized (
       select id from posthorn.tasks
        where state in ('queued', 'running')
          and (runner is null or heartbeat_at < clock_timestamp() - make_interval(secs => 10::float8)
               or heartbeat_at > clock_timestamp())
        order by updated_at limit 1 for update skip locked
     )
     update posthorn.tasks t set state = 'running', runner = $1, heartbeat_at = clock_timestamp(), updated_at = now()
       from free f where t.id = f.id
     returning t.*`,
    [randomUUID()],
  );
const newTask = async (kind: TaskKind): Promise<void> => {
  await database.query('delete from posthorn.tasks');
  await database.query(
    `insert into posthorn.tasks (id, kind, selection, total, created_by) values ($1, $2, '{}', 0, 'test')`,
    [randomUUID(), kind],
  );
};

test.each(taskKinds)(
  'LIF-2: the previous release claims a task of kind %s only if it knows it',
  async (kind) => {
    const isKnown = kind === 'replay' || kind === 'discard';
    await newTask(kind);
    expect(await claimAsPreviousRelease()).toHaveLength(isKnown ? 1 : 0);

    await newTask(kind);
    const runner = randomUUID() as Uuid;
    expect(await claimTask(own.pool('api'), runner, 10_000, [kind])).toMatchObject({ kind, runner });
    await database.query(`update posthorn.tasks set heartbeat_at = now() - interval '1 minute'`);
    expect(await claimAsPreviousRelease()).toHaveLength(isKnown ? 1 : 0);
    // A worker of this release takes it over.
    await database.query(`update posthorn.tasks set heartbeat_at = now() - interval '1 minute'`);
    expect(await claimTask(own.pool('api'), randomUUID() as Uuid, 10_000, [kind])).not.toBeNull();
  },
);
