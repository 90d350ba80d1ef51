/** A tenant orders as many bulk tasks as it can: tasks of other tenants wait for one turn, not for all of them. */
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { createEndpoint, expectStatus, newReceiver, publish, usePosthorn } from '../support/posthorn.ts';

const MAX_TASKS = 20;
const posthorn = usePosthorn({ inProcess: true, env: { POSTHORN_MAX_TASKS_PER_TENANT: String(MAX_TASKS) } });

const replayAll = (endpointId: string) =>
  posthorn.api('POST', `/v1/endpoints/${endpointId}/replay`, { status: ['delivered'] });
const stateOf = async (id: string): Promise<string> =>
  (await expectStatus(posthorn.api('GET', `/v1/tasks/${id}`), 200)).body.state;
const openTasksOf = async (tenant: string): Promise<number> =>
  (
    await posthorn.database.query(
      "select from posthorn.tasks where tenant = $1 and state in ('queued', 'running')",
      [tenant],
    )
  ).length;

test('tenants take turns, and a tenant at its limit gets 429 that names the limit', async () => {
  const receiver = await newReceiver();
  const endpointOf = async (tenant: string): Promise<string> => {
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant });
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    await eventually('it is delivered', async () => {
      const { body } = await posthorn.api('GET', `/v1/events/${event.id}/deliveries`);
      return body.data[0]?.status === 'delivered';
    });
    return id;
  };
  const [greedy, other] = [await endpointOf('greedy'), await endpointOf('other')];
  // Each task of the greedy tenant takes a while.
  await posthorn.database.query(`
    create function public.be_slow() returns trigger language plpgsql as $$
    begin
      if new.tenant = 'greedy' then perform pg_sleep(0.3); end if;
      return new;
    end $$`);
  await posthorn.database.query(
    'create trigger be_slow before insert on posthorn.queue for each row execute function public.be_slow()',
  );
  const answers = await Promise.all(Array.from({ length: MAX_TASKS + 10 }, () => replayAll(greedy)));
  const refused = answers.filter(({ status }) => status !== 202);
  // Some tasks may have ended meanwhile.
  expect(refused.length).toBeGreaterThan(0);
  expect(await openTasksOf('greedy')).toBeLessThanOrEqual(MAX_TASKS);
  for (const { status, body, headers } of refused) {
    expect(status).toBe(429);
    expect(body).toMatchObject({ code: 'rate_limited' });
    expect(body.detail).toContain(`"greedy" has ${MAX_TASKS} tasks`);
    expect(body.detail).toContain('POSTHORN_MAX_TASKS_PER_TENANT');
    expect(headers['retry-after']).toBe('5');
  }
  const before = await openTasksOf('greedy');
  const { body: task } = await expectStatus(replayAll(other), 202);
  await eventually('the other tenant had its turn', async () => (await stateOf(task.id)) === 'done');
  // One that ran already, one that was claimed meanwhile, and some time to notice.
  expect(await openTasksOf('greedy')).toBeGreaterThan(before - 8);
  // A dry run is not a task.
  await expectStatus(
    posthorn.api('POST', `/v1/endpoints/${greedy}/replay`, { status: ['delivered'], dry_run: true }),
    200,
  );
});
