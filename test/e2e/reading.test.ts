import { describe, expect, test } from 'vitest';
import {
  attemptsOf,
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';

const posthorn = usePosthorn();

const get = async (path: string) => (await expectStatus(posthorn.api('GET', path), 200)).body;
const idsOf = (page: { data: { id: string }[] }) => page.data.map(({ id }) => id);
const keyOf = async (tenant: string) => ({
  key: (await posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant })).body.key as string,
});

/** JSON that would change if it were parsed and written again. */
const AWKWARD = '{ "z":1, "a": 1.10,\t"big":12345678901234567890123,"e":1E400,"u":"\\u00e9\\/é","z":2 }';

describe('OBS-5: what happened to an event', () => {
  test('ACC-5: an event is shown with its data byte for byte', async () => {
    const tenant = newTenant();
    const event = await publish(
      posthorn,
      `{"tenant":"${tenant}","type":"a.b","idempotency_key":"k","channels":["x"],"data":${AWKWARD}}`,
    );
    const answer = await expectStatus(posthorn.api('GET', `/v1/events/${event.id}`), 200);
    expect(answer.headers['content-type']).toMatch(/^application\/json/);
    expect(answer.text.endsWith(`,"data":${AWKWARD}}`)).toBe(true);
    expect(answer.body).toMatchObject({
      id: event.id,
      type: 'a.b',
      tenant,
      created_at: event.created_at,
      deliveries: 0,
      idempotency_key: 'k',
      channels: ['x'],
      endpoint_ids: null,
    });
  });

  test('its deliveries and all their attempts are listed in pages', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    receiver.answer(({ headers }) => ({ status: headers['posthorn-attempt'] === '1' ? 503 : 200 }));
    for (let n = 0; n < 3; n += 1) {
      await createEndpoint(posthorn, {
        url: `${receiver.url}/${n}`,
        tenant,
        retry: { schedule: [0, 0.02], jitter: 'none' },
      });
    }
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    await publish(posthorn, { tenant, type: 'a.b', data: 2 });
    const deliveries = await untilDeliveries(posthorn, event.id, 'delivered', { count: 3 });
    const path = `/v1/events/${event.id}`;
    const all = await get(`${path}/deliveries`);
    expect(idsOf(all)).toEqual(deliveries.map(({ id }) => id));
    const first = await get(`${path}/deliveries?limit=2`);
    const rest = await get(`${path}/deliveries?limit=2&cursor=${first.next_cursor}`);
    expect([...idsOf(first), ...idsOf(rest)]).toEqual(idsOf(all));
    expect((await get(`${path}/deliveries?status=dead`)).data).toEqual([]);

    const attempts = await get(`${path}/attempts`);
    expect(attempts.data).toHaveLength(6);
    expect(new Set(attempts.data.map(({ delivery_id }: { delivery_id: string }) => delivery_id))).toEqual(
      new Set(idsOf(all)),
    );
    const pages = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: { data: unknown[]; next_cursor: string | null } = await get(
        `${path}/attempts?limit=4${cursor === '' ? '' : `&cursor=${cursor}`}`,
      );
      pages.push(...page.data);
      cursor = page.next_cursor;
    }
    expect(pages).toEqual(attempts.data);
    await expectStatus(posthorn.api('GET', `${path}/attempts?cursor=dlv_1.att_1`), 400);
  });

  test.each([
    ['full', {}],
    ['thin', { payload: 'thin' }],
    ['pinned to a version since changed', { api_version: '2027-01' }],
  ])('RTY-5: the exact request of any attempt can be read (%s)', async (_what, settings) => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    receiver.answer(({ index }) => ({ status: index === 0 ? 503 : 200 }));
    const endpoint = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      headers: {
        'x-mine': 'yes',
        authorization: 'Bearer of-the-receiver',
        'set-cookie': 'stolen=1',
        'x-accel-redirect': '/internal',
      },
      plain_headers: ['x-mine', 'set-cookie', 'x-accel-redirect'],
      retry: { schedule: [0, 0.02], jitter: 'none' },
      ...settings,
    });
    const event = await publish(posthorn, `{"tenant":"${tenant}","type":"a.b","data":${AWKWARD}}`);
    const [delivery] = await untilDeliveries(posthorn, event.id, 'delivered');
    await posthorn.api('PATCH', `/v1/endpoints/${endpoint.id}`, { api_version: null });
    for (const [index, sent] of receiver.requests.entries()) {
      const shown = await expectStatus(
        posthorn.api('GET', `/v1/deliveries/${delivery!.id}/attempts/${index + 1}/request`),
        200,
      );
      expect(shown.text).toBe(sent.body.toString());
      for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature', 'posthorn-attempt'])
        expect(shown.headers[name]).toBe(sent.headers[name]);
      // The endpoint's owner must not instruct the browser or the proxy of the reader.
      for (const name of ['x-mine', 'set-cookie', 'x-accel-redirect', 'authorization'])
        expect(shown.headers[name]).toBeUndefined();
      expect(shown.headers).toMatchObject({
        'posthorn-sent-x-mine': 'yes',
        'posthorn-sent-set-cookie': 'stolen=1',
        'posthorn-sent-x-accel-redirect': '/internal',
        'posthorn-sent-authorization': '[redacted]',
      });
    }
    expect(receiver.requests).toHaveLength(2);
    expect(await attemptsOf(posthorn, delivery!.id)).toHaveLength(2);
    await expectStatus(posthorn.api('GET', `/v1/deliveries/${delivery!.id}/attempts/3/request`), 404);
    await posthorn.api('DELETE', `/v1/endpoints/${endpoint.id}`);
    await expectStatus(posthorn.api('GET', `/v1/deliveries/${delivery!.id}/attempts/1/request`), 200);
  });
});

describe('the list of events', () => {
  test('is newest first, by tenant, type, time and key, in pages; ACC-6: also events without deliveries', async () => {
    const tenant = newTenant();
    const ids: string[] = [];
    const times: string[] = [];
    for (const [n, type] of ['a.x', 'a.y', 'a.x', 'b.z', 'a.x'].entries()) {
      const event = await publish(posthorn, { tenant, type, data: n, idempotency_key: `k${n}` });
      ids.unshift(event.id);
      times.unshift(event.created_at);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    const of = (...positions: number[]) => positions.map((position) => ids[position]);
    const found = async (query: string) => idsOf(await get(`/v1/events?tenant=${tenant}&${query}`));
    expect(await found('')).toEqual(ids);
    expect(await found('type=a.x')).toEqual(of(0, 2, 4));
    expect(await found('type=none.such')).toEqual([]);
    expect(await found(`since=${times[2]}`)).toEqual(of(0, 1, 2));
    expect(await found(`until=${times[2]}&type=a.x`)).toEqual(of(4));
    expect(await found('idempotency_key=k3')).toEqual(of(1));
    expect(await found('idempotency_key=k3&type=a.x')).toEqual([]);
    expect(await found('idempotency_key=other')).toEqual([]);
    const paged: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: { data: { id: string }[]; next_cursor: string | null } = await get(
        `/v1/events?tenant=${tenant}&type=a.x&limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`,
      );
      expect(page.data.length).toBeGreaterThan(0);
      paged.push(...idsOf(page));
      // Events that are added meanwhile are newer and do not affect the pages.
      await publish(posthorn, { tenant, type: 'a.x', data: 'later' });
      cursor = page.next_cursor;
    }
    expect(paged).toEqual(of(0, 2, 4));
    const { data } = await get(`/v1/events?tenant=${tenant}&limit=1`);
    expect(data[0]).not.toHaveProperty('data');
    await expectStatus(posthorn.api('GET', '/v1/events?cursor=dlv_1'), 400);
    await expectStatus(posthorn.api('GET', '/v1/events?has=luck'), 422);
  });

  test('a rare type is found behind thousands of others, page by page', async () => {
    const tenant = newTenant();
    const rare = await publish(posthorn, { tenant, type: 'rare.one', data: 1 });
    await posthorn.database.query(
      `insert into posthorn.events (id, tenant, type, data, deliveries)
       select (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint + 1000), 12, '0') || '7000'
               || lpad(to_hex(n), 16, '0'))::uuid, $1, 'often.one', '1', 0
         from generate_series(1, 12000) n`,
      [tenant],
    );
    let pages = 0;
    let cursor = '';
    let found: string[] = [];
    do {
      const page = await get(`/v1/events?tenant=${tenant}&type=rare.one${cursor && `&cursor=${cursor}`}`);
      found = [...found, ...idsOf(page)];
      cursor = page.next_cursor ?? '';
      pages += 1;
    } while (cursor !== '');
    expect(found).toEqual([rare.id]);
    expect(pages).toBe(3);
  });

  test('with has=dead or has=waiting lists each event once, however many of its deliveries match', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    receiver.answer(({ path, json }) => ({ status: path === '/ok' || json().data === 'fine' ? 200 : 400 }));
    for (const path of ['ok', 'bad', 'worse'])
      await createEndpoint(posthorn, { url: `${receiver.url}/${path}`, tenant, events: ['x.*'] });
    const held = await createEndpoint(posthorn, { url: receiver.url, tenant, events: ['y.*'], paused: true });
    const publishOne = async (type: string, data: unknown) =>
      (await publish(posthorn, { tenant, type, data })).id;
    const dead = [];
    for (let n = 0; n < 3; n += 1) dead.unshift(await publishOne('x.y', n));
    const fine = await publishOne('x.y', 'fine');
    const waiting = [await publishOne('y.z', 1), await publishOne('y.z', 2)].reverse();
    await untilDeliveries(posthorn, fine, 'delivered', { count: 3 });
    for (const id of dead)
      await expect
        .poll(async () => (await get(`/v1/events/${id}/deliveries?status=dead`)).data.length)
        .toBe(2);
    expect(idsOf(await get(`/v1/events?tenant=${tenant}&has=dead`))).toEqual(dead);
    expect(idsOf(await get(`/v1/events?tenant=${tenant}&has=waiting`))).toEqual(waiting);
    expect(idsOf(await get(`/v1/events?tenant=${tenant}&has=dead&type=y.z`))).toEqual([]);
    const first = await get(`/v1/events?tenant=${tenant}&has=dead&limit=2`);
    const rest = await get(`/v1/events?tenant=${tenant}&has=dead&limit=2&cursor=${first.next_cursor}`);
    expect([...idsOf(first), ...idsOf(rest)]).toEqual(dead);
    expect(rest.next_cursor).toBeNull();
    await posthorn.api('DELETE', `/v1/endpoints/${held.id}`);
  });

  test('SEC-2: another tenant’s event is 404 in every route, and in no list', async () => {
    const [mine, theirs] = [newTenant(), newTenant()];
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant: theirs });
    const event = await publish(posthorn, { tenant: theirs, type: 'a.b', data: 1, idempotency_key: 'k' });
    const [delivery] = await untilDeliveries(posthorn, event.id, 'delivered');
    const key = await keyOf(mine);
    for (const path of [
      `/v1/events/${event.id}`,
      `/v1/events/${event.id}/deliveries`,
      `/v1/events/${event.id}/attempts`,
      `/v1/deliveries/${delivery!.id}`,
      `/v1/deliveries/${delivery!.id}/attempts`,
      `/v1/deliveries/${delivery!.id}/attempts/1/request`,
    ]) {
      await expectStatus(posthorn.api('GET', path, undefined, key), 404);
      await expectStatus(posthorn.api('GET', path, undefined, await keyOf(theirs)), 200);
    }
    for (const query of ['', '?idempotency_key=k', '?has=waiting', '?type=a.b']) {
      const { body } = await expectStatus(posthorn.api('GET', `/v1/events${query}`, undefined, key), 200);
      expect(body.data).toEqual([]);
    }
    await expectStatus(posthorn.api('GET', `/v1/events?tenant=${theirs}`, undefined, key), 403);
    expect(idsOf(await get('/v1/events?idempotency_key=k'))).toContain(event.id);
    await expectStatus(posthorn.api('GET', '/v1/events/evt_nonsense'), 404);
  });
});
