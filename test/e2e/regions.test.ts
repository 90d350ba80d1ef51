/** Two real workers of two regions, and a change of region while requests are on the wire. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import {
  arrivals,
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  startTestPosthorn,
  type TestPosthorn,
  waitingIn,
} from '../support/posthorn.ts';

/** The worker that made each attempt of the event. */
const SENDERS = `
  select a.worker from posthorn.attempts a
   where posthorn.event_of_delivery(a.delivery_id) = posthorn.private_id('evt', $1) order by a.id`;

describe('SCL-5: regions', () => {
  let database: TestDatabase;
  let home: TestPosthorn;
  let eu: TestPosthorn;
  beforeAll(async () => {
    database = await createTestDatabase();
    home = await startTestPosthorn({ database });
    eu = await startTestPosthorn({ database, args: ['--region', 'eu'] });
  });
  afterAll(async () => {
    await Promise.all([home?.stop(), eu?.stop()]);
    await database?.drop();
  });

  const workerOf = async (posthorn: TestPosthorn): Promise<string> => {
    const rows = await database.query<{ name: string }>(
      `select name from posthorn.workers where region ${posthorn === eu ? '<>' : '='} 0`,
    );
    expect(rows).toHaveLength(1);
    return rows[0]!.name;
  };
  const untilSentBy = (event: { id: string }, posthorn: TestPosthorn) =>
    eventually('the right worker has sent it', async () => {
      const rows = await database.query<{ worker: string }>(SENDERS, [event.id]);
      if (rows.length > 0) expect(rows.map(({ worker }) => worker)).toEqual([await workerOf(posthorn)]);
      return rows.length === 1;
    });

  test('workers send only to the endpoints of their region, whichever server accepts the event', async () => {
    const receiver = await newReceiver();
    for (const [region, sender] of [
      [null, home],
      ['eu', eu],
    ] as const) {
      const tenant = newTenant();
      const { id } = await createEndpoint(home, { url: receiver.url, tenant, region });
      const shown = await expectStatus(eu.api('GET', `/v1/endpoints/${id}`), 200);
      expect(shown.body.region).toBe(region);
      for (const accepting of [home, eu])
        await untilSentBy(await publish(accepting, { tenant, type: 'a', data: {} }), sender);
    }
    const rows = await database.query<{ region: number; shards: number }>(
      `select w.region, count(*)::int as shards from posthorn.workers w join posthorn.shards s on s.owner = w.id
        group by w.region order by w.region`,
    );
    expect(rows).toEqual([
      { region: 0, shards: 256 },
      { region: 1, shards: 256 },
    ]);
  });

  test('a change of region hands the endpoint over: each event arrives once, in order', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const { id } = await createEndpoint(home, { url: receiver.url, tenant, ordering: 'fifo' });
    const events: { id: string }[] = [];
    for (let n = 0; n < 60; n += 1) {
      if (n % 20 === 10)
        await expectStatus(eu.api('PATCH', `/v1/endpoints/${id}`, { region: n === 30 ? null : 'eu' }), 200);
      events.push(await publish(n % 2 === 0 ? home : eu, { tenant, type: 'a', data: n }));
    }
    await eventually('nothing waits', async () => (await waitingIn(home)) === 0);
    expect(arrivals(receiver.requests)).toEqual(new Map(events.map((event) => [event.id, 1])));
    expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual(
      events.map((event) => event.id),
    );
    // The new owner does not wait for a deadline (15 s): the old one let its request end.
    const pauses = receiver.requests.slice(1).map(({ at }, index) => at - receiver.requests[index]!.at);
    expect(Math.max(...pauses)).toBeLessThan(10_000);
    await untilSentBy(events.at(-1)!, eu);
    await untilSentBy(events[0]!, home);
    const audit = await expectStatus(home.api('GET', `/v1/audit?object_id=${id}`), 200);
    expect(audit.body.data[0].changes).toContainEqual({ field: 'region', before: null, after: 'eu' });
  });

  test('an unknown or invalid region is refused', async () => {
    const endpoint = { url: 'http://127.0.0.1:9/', tenant: newTenant() };
    for (const [region, rule] of [
      ['mars', 'must be a region that a worker was started with: eu'],
      ['EU', 'must begin with a lower-case letter'],
    ]) {
      const answer = await expectStatus(home.api('POST', '/v1/endpoints', { ...endpoint, region }), 422);
      expect(answer.body.errors).toEqual([{ path: 'region', message: expect.stringContaining(rule!) }]);
    }
  });

  test('a worker of an earlier release cannot register beside regions', async () => {
    await expect(
      database.query(
        `insert into posthorn.workers (id, name, lock_key, wire_version) values (gen_random_uuid(), 'old', 1, 2)`,
      ),
    ).rejects.toThrow('this deployment has regions, which this release of Posthorn does not know');
  });
});

test('SCL-5: a region is not created while a worker of an earlier release is registered', async () => {
  const database = await createTestDatabase();
  const home = await startTestPosthorn({ database });
  try {
    await database.query(
      `insert into posthorn.workers (id, name, lock_key, wire_version, renewed_at)
       values (gen_random_uuid(), 'old', 1, 2, clock_timestamp() + interval '1 hour')`,
    );
    await expect(database.query("select posthorn.create_region('eu')")).rejects.toThrow(
      'a worker of an earlier release is registered',
    );
    await database.query("delete from posthorn.workers where name = 'old'");
    expect(await database.query("select posthorn.create_region('eu') as number")).toEqual([{ number: 1 }]);
    expect(await database.query("select posthorn.create_region('eu') as number")).toEqual([{ number: 1 }]);
  } finally {
    await home.stop();
    await database.drop();
  }
});
