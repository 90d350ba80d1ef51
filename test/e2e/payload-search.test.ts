/** Search inside payloads (from an order number to its event), and the outcome of each event in lists. */
import { describe, expect, test } from 'vitest';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  usePosthorn,
} from '../support/posthorn.ts';

const posthorn = usePosthorn();

type Listed = { data: { id: string; outcome: Record<string, number> | null }[]; next_cursor: string | null };
const list = async (query: Record<string, string>): Promise<Listed> =>
  (await expectStatus(posthorn.api('GET', `/v1/events?${new URLSearchParams(query)}`), 200)).body;
const idsOf = ({ data }: Listed) => data.map(({ id }) => id);
const NOTHING = { delivered: 0, retrying: 0, pending: 0, dead: 0, skipped: 0, discarded: 0 };

describe('search inside payloads', () => {
  test('OBS-5: an event is found by a path and a value of its data, within a time, a tenant, a type and an outcome', async () => {
    const [tenant, other] = [newTenant(), newTenant()];
    const events = Array.from({ length: 40 }, (_, n) => ({
      type: n % 2 === 0 ? 'order.created' : 'order.paid',
      tenant,
      data: { order_id: `ord_${n % 20}`, lines: [{ sku: `s${n}` }] },
    }));
    const { body } = await posthorn.api('POST', '/v1/events/batch', { events });
    const ids: string[] = body.results.map(({ id }: { id: string }) => id);
    await publish(posthorn, { type: 'order.created', tenant: other, data: { order_id: 'ord_7' } });

    expect(idsOf(await list({ tenant, where: 'data.order_id:ord_7' }))).toEqual([ids[27], ids[7]]);
    expect(idsOf(await list({ tenant, where: 'data.lines.sku:s3' }))).toEqual([ids[3]]);
    expect(idsOf(await list({ tenant, where: 'data.order_id:ord' }))).toEqual([]);
    expect(idsOf(await list({ tenant, where: 'data.order_id:ord_7', type: 'order.created' }))).toEqual([]);
    expect(idsOf(await list({ tenant, where: 'data.order_id:ord_7', has: 'none' }))).toHaveLength(2);
    expect(idsOf(await list({ tenant, where: 'data.order_id:ord_7', has: 'dead' }))).toEqual([]);
    const since = new Date(Date.now() + 60_000).toISOString();
    expect(idsOf(await list({ tenant, where: 'data.order_id:ord_7', since }))).toEqual([]);

    const first = await list({ tenant, where: 'data.order_id:ord_7', limit: '1' });
    expect(idsOf(first)).toEqual([ids[27]]);
    const second = await list({
      tenant,
      where: 'data.order_id:ord_7',
      limit: '1',
      cursor: first.next_cursor!,
    });
    expect(idsOf(second)).toEqual([ids[7]]);
    expect(second.next_cursor).toBe(null);

    const { key } = (await posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant: other })).body;
    const foreign = await posthorn.api('GET', '/v1/events?where=data.order_id:ord_7', undefined, { key });
    expect(foreign.body.data).toHaveLength(1);
  });

  test('a search examines a bounded number of events, and its cursor leads further back', async () => {
    const tenant = newTenant();
    const oldest = await publish(posthorn, { type: 'a', tenant, data: { n: 'needle' } });
    // Newer events, as many as two requests examine, made in the database: publishing them would take minutes.
    await posthorn.database.query(
      `insert into posthorn.events (id, tenant, type, data, deliveries)
       select (lpad(to_hex(floor(extract(epoch from clock_timestamp()) * 1000)::bigint + 1 + n / 1000), 12, '0')
               || '7' || lpad(to_hex(n % 1000), 3, '0') || '8000' || lpad(to_hex(n), 8, '0') || '0000')::uuid,
              $1, 'a', '{"n":"hay"}', 0
         from generate_series(1, 110000) n`,
      [tenant],
    );
    const pages: string[][] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: Listed = await list({
        tenant,
        where: 'data.n:needle',
        ...(cursor !== '' && { cursor: cursor! }),
      });
      pages.push(idsOf(page));
      cursor = page.next_cursor;
    }
    expect(pages.length).toBeGreaterThan(1);
    expect(pages.flat()).toEqual([oldest.id]);
  });

  test('a search that is not a path and a value is refused with its reason', async () => {
    for (const where of ['order_id', 'order_id:1', 'data.a:', 'data..b:1']) {
      const { body } = await expectStatus(
        posthorn.api('GET', `/v1/events?where=${encodeURIComponent(where)}`),
        422,
      );
      expect(body.errors[0].path).toBe('where');
    }
  });
});

describe('the outcome of an event', () => {
  test('lists and the event itself count its deliveries by status, and lists find it by each status', async () => {
    const tenant = newTenant();
    const [good, bad, slow] = [await newReceiver(), await newReceiver(), await newReceiver()];
    bad.answer({ status: 400 });
    slow.answer({ status: 503 });
    for (const url of [good.url, `${good.url}/2`, bad.url])
      await createEndpoint(posthorn, { url, tenant, events: ['order.created'] });
    await createEndpoint(posthorn, { url: slow.url, tenant, retry: { schedule: [0, 3600] } });
    const event = await publish(posthorn, { type: 'order.created', tenant, data: {} });
    await expect
      .poll(async () => (await posthorn.api('GET', `/v1/events/${event.id}`)).body.outcome)
      .toEqual({ ...NOTHING, delivered: 2, dead: 1, retrying: 1 });
    const unsent = await publish(posthorn, { type: 'x', tenant: newTenant(), data: {} });

    expect((await list({ tenant })).data).toMatchObject([
      { id: event.id, outcome: { delivered: 2, dead: 1, retrying: 1 } },
    ]);
    for (const has of ['delivered', 'dead', 'retrying', 'waiting'])
      expect(idsOf(await list({ tenant, has }))).toEqual([event.id]);
    for (const has of ['pending', 'skipped', 'discarded', 'none'])
      expect(idsOf(await list({ tenant, has }))).toEqual([]);
    const none = await list({ has: 'none', limit: '1' });
    expect(none.data).toMatchObject([{ id: unsent.id, outcome: NOTHING }]);

    bad.answer({ status: 200 });
    await posthorn.api('POST', `/v1/events/${event.id}/replay`, { status: ['dead'] });
    await expect
      .poll(async () => (await list({ tenant })).data[0]!.outcome)
      .toEqual({ ...NOTHING, delivered: 3, retrying: 1 });
  });
});
