import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { Webhook } from 'standardwebhooks';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { isAlive, newDevHome } from '../support/dev.ts';
import { eventually } from '../support/eventually.ts';
import {
  type AcceptedEvent,
  arrivals,
  createEndpoint,
  newReceiver,
  publish,
  untilDeliveries,
  waitingIn,
} from '../support/posthorn.ts';

describe('dev mode, on an embedded PostgreSQL', () => {
  test('starts in an empty directory, and the printed commands deliver a first webhook', async () => {
    const home = await newDevHome();
    const posthorn = await home.start();
    expect(posthorn.output()).toContain(`Console    ${posthorn.url}/console`);
    expect(posthorn.output()).toContain(
      'Development mode: http:// and receivers on this machine are allowed',
    );
    const banner = posthorn.output();
    expect(banner).toMatch(/curl -s \S+\/v1\/endpoints -H 'authorization: Bearer phk_/);

    const receiver = await newReceiver();
    const { body: endpoint } = await posthorn.api('POST', '/v1/endpoints', { url: receiver.url });
    const event = await publish(posthorn, { type: 'order.created', data: { order: 42 } });
    const [request] = await receiver.waitFor(1);
    expect(new Webhook(endpoint.secret).verify(request!.body, { ...request!.headers })).toMatchObject({
      id: event.id,
      data: { order: 42 },
    });
    await untilDeliveries(posthorn, event.id, 'delivered');

    // The keys are for the owner only.
    for (const name of await readdir(home.dataDir)) {
      if (!/key/.test(name)) continue;
      expect((await stat(path.join(home.dataDir, name))).mode & 0o777, name).toBe(0o600);
    }

    // A stop also stops PostgreSQL. The next start has the same key and the same data.
    const postgres = await home.postgresPid();
    expect(postgres).toBeDefined();
    await posthorn.stop();
    expect(isAlive(postgres!)).toBe(false);
    const again = await home.start();
    expect(again.key).toBe(posthorn.key);
    await untilDeliveries(again, event.id, 'delivered');
    const second = await publish(again, { type: 'order.created', data: { order: 43 } });
    await untilDeliveries(again, second.id, 'delivered');
    expect(receiver.requests).toHaveLength(2);
    await again.stop();
  });

  test('uses DATABASE_URL instead if it is set', async () => {
    const database = await createTestDatabase({ empty: true });
    onTestFinished(() => database.drop());
    const home = await newDevHome();
    const posthorn = await home.start({ DATABASE_URL: database.url });
    expect(await home.postgresPid()).toBeUndefined();
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant: 'default' });
    const event = await publish(posthorn, { type: 'order.created', data: 1 });
    await untilDeliveries(posthorn, event.id, 'delivered');
    expect(await database.query('select status from posthorn.deliveries')).toEqual([{ status: 'delivered' }]);
    // The password is in no log.
    expect(posthorn.output()).not.toContain(new URL(database.url).password);
    await posthorn.stop();
  });

  test('delivers all accepted events after kill -9 and an immediate restart', async () => {
    const home = await newDevHome();
    const before = await home.start();
    const receiver = await newReceiver();
    const paths = ['/one', '/two'];
    for (const hook of paths) {
      await createEndpoint(before, { url: `${receiver.url}${hook}`, tenant: 'default', max_in_flight: 5 });
    }

    const accepted: AcceptedEvent[] = [];
    let killed = false;
    const posts = Array.from({ length: 100 }, async (_, n) => {
      // Spread out, so that at the kill some events are delivered, some are on the wire, some wait and some are not posted yet.
      await eventually('its turn', () => accepted.length >= n - 5 || killed);
      try {
        const answer = await before.api('POST', '/v1/events', { type: 'order.created', data: { n } });
        if (answer.status === 202) accepted.push(answer.body);
      } catch {
        // Killed before it could answer: nothing was promised.
      }
      // From the thirtieth on the receiver is too slow to answer before the kill.
      if (accepted.length === 30) receiver.hang();
    });
    await eventually('half of them are accepted', () => accepted.length >= 50);
    const answered = receiver.requests.findIndex((_request, index) => receiver.isHeld(index));
    await eventually('those answered are written down, the others fill the wire', async () => {
      const { body } = await before.api('GET', '/v1/deliveries?status=delivered&limit=250');
      return body.data.length === answered && receiver.requests.length === answered + 2 * 5;
    });
    await before.kill('SIGKILL');
    killed = true;
    await Promise.all(posts);
    expect(accepted.length).toBeGreaterThanOrEqual(50);
    const inFlight = receiver.requests.slice(answered);
    receiver.release();

    const after = await home.start();
    await eventually('nothing waits any more', async () => (await waitingIn(after)) === 0);
    for (const hook of paths) {
      const mine = receiver.requests.filter((request) => request.path === hook);
      const counts = arrivals(mine);
      expect(
        accepted.filter(({ id }) => !counts.has(id)),
        'accepted and lost',
      ).toEqual([]);
      const duplicates = [...counts].filter(([, count]) => count > 1).map(([id]) => id);
      const mayRepeat = inFlight
        .filter((request) => request.path === hook)
        .map(({ headers }) => headers['webhook-id']);
      expect(mayRepeat).toEqual(expect.arrayContaining(duplicates));
      expect(Math.max(...counts.values()), 'sent at most twice').toBeLessThanOrEqual(2);
    }

    // Afterwards it accepts and delivers as before.
    const last = await publish(after, { type: 'order.created', data: 'last' });
    await untilDeliveries(after, last.id, 'delivered', { count: 2 });
    await after.stop();
  });
});
