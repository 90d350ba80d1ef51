/** A statement timeout (SQLSTATE 57014) affects only the event that takes too long. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { newTenant, usePosthorn } from '../support/posthorn.ts';
import { Shop } from '../support/shop.ts';

const posthorn = usePosthorn({ inProcess: true });
let shop: Shop;
beforeAll(async () => {
  shop = await Shop.open(posthorn.database.url);
  await posthorn.database.query(`
    create function public.time_out() returns trigger language plpgsql as $$
    begin
      if new.type = 'too.slow' then
        raise exception 'canceling statement due to statement timeout' using errcode = '57014';
      end if;
      return new;
    end $$`);
  await posthorn.database.query(
    'create trigger time_out before insert on posthorn.events for each row execute function public.time_out()',
  );
});
afterAll(() => shop.close());

test('the event of a batch that times out is answered with 503, at once, and the others with 202', async () => {
  const tenant = newTenant();
  const events = Array.from({ length: 40 }, (_, n) => ({
    tenant,
    type: n === 17 ? 'too.slow' : 'a.b',
    data: n,
  }));
  const startedAt = performance.now();
  const { body } = await posthorn.api('POST', '/v1/events/batch', { events });
  const codes = body.results.map((result: { error?: { status: number } }) => result.error?.status ?? 202);
  expect(codes).toEqual(events.map(({ type }) => (type === 'a.b' ? 202 : 503)));
  expect(performance.now() - startedAt).toBeLessThan(2_000);
});

test('OUT-1: a row of the outbox that times out is set aside with the reason; those behind it become events', async () => {
  const tenant = newTenant();
  await shop.transaction(async (client) => {
    for (let n = 0; n < 20; n += 1)
      await shop.publish(client, { type: n === 3 ? 'too.slow' : 'a.b', data: String(n), tenant });
  });
  const reasons = () =>
    posthorn.database.query('select reason from posthorn.outbox_rejected where tenant = $1', [tenant]);
  await eventually('the row is set aside', async () => (await reasons()).length === 1, { timeoutMs: 4_000 });
  expect((await reasons())[0]!.reason).toMatch(/took longer.*statement timeout/);
  const stored = await posthorn.database.query('select from posthorn.events where tenant = $1', [tenant]);
  expect(stored).toHaveLength(19);
  expect(await posthorn.database.query('select from posthorn.outbox')).toEqual([]);
});
