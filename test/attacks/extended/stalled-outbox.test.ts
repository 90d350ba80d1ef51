/** Rows of the outbox that nobody can store, while everything else works: the log says so within seconds. */
import { expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { newTenant, publish, usePosthorn } from '../../support/posthorn.ts';

const posthorn = usePosthorn();
const WARNING = 'the oldest row of the outbox is not stored as an event';
const countWaiting = async (): Promise<number> =>
  (await posthorn.database.query('select from posthorn.outbox')).length;

test('a stalled outbox is logged while the server is ready, and so is its end', async () => {
  const tenant = newTenant();
  await posthorn.database.query("select posthorn.publish('a.b', '1', $1)", [tenant]);
  await eventually('it is stored', async () => (await countWaiting()) === 0);
  // The server can read the rows, but not delete them.
  await posthorn.database.query(`
    create function public.refuse() returns trigger language plpgsql as $$
    begin raise exception 'not now' using errcode = '55P03'; end $$`);
  await posthorn.database.query(
    'create trigger refuse before delete on posthorn.outbox for each row execute function public.refuse()',
  );
  await posthorn.database.query("select posthorn.publish('a.b', '2', $1)", [tenant]);
  const startedAt = performance.now();
  await eventually('a warning is logged', () => posthorn.output().includes(WARNING), { timeoutMs: 20_000 });
  expect(performance.now() - startedAt).toBeLessThan(15_000);
  // Other events are accepted.
  await publish(posthorn, { tenant: newTenant(), type: 'a.b', data: 1 });
  await posthorn.database.query('drop trigger refuse on posthorn.outbox');
  await eventually('rows are stored again', async () => (await countWaiting()) === 0, { timeoutMs: 20_000 });
  await eventually(
    'that is logged',
    () => posthorn.output().includes('rows of the outbox are stored again'),
    {
      timeoutMs: 10_000,
    },
  );
});
