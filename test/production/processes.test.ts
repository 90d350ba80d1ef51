/** `serve --processes N` accepts and delivers as one server, also after one of its children is killed. */

import { expect, onTestFinished, test } from 'vitest';
import { scrape } from '../support/alerts.ts';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import {
  arrivals,
  createEndpoint,
  newReceiver,
  startTestPosthorn,
  untilDeliveries,
} from '../support/posthorn.ts';
import { childrenOf } from '../support/processes.ts';

async function newDatabase() {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  return database;
}

test('CLI-1: with serve --processes 3, the accepting child routes deliveries to its siblings, which do not read them from the database', async () => {
  const database = await newDatabase();
  const receiver = await newReceiver();
  const port = String(await freePort());
  const posthorn = await startTestPosthorn({ database, args: ['--processes', '3', '--port', port] });
  const handedOn = async () => {
    const scraped = await scrape(posthorn);
    return (to: string) => scraped.value('posthorn_deliveries_handed_on_total', { to });
  };
  const tenants = Array.from({ length: 10 }, (_, n) => `tenant-${n}`);
  for (const tenant of tenants) await createEndpoint(posthorn, { url: receiver.url, tenant });
  const publishToAll = async () => {
    const batch = tenants.map((tenant) => ({ tenant, type: 'a.b', data: { of: tenant } }));
    const { body } = await posthorn.api('POST', '/v1/events/batch', { events: batch });
    return body.results.map(({ id }: { id: string }) => id) as string[];
  };
  const published = await publishToAll();
  await eventually('they have found each other', async () => {
    const before = await handedOn();
    for (let n = 0; n < 5; n += 1) published.push(...(await publishToAll()));
    const after = await handedOn();
    return after('notify') === before('notify') && after('sibling') > before('sibling');
  });
  await receiver.waitFor(published.length);
  for (const id of published.slice(-10)) await untilDeliveries(posthorn, id, 'delivered');
  expect(arrivals(receiver.requests)).toEqual(new Map(published.map((id) => [id, 1])));
  await posthorn.stop();
});

test.each([
  ['accepts', false],
  ['delivers', true],
])(
  'CLI-1: after kill -9 of the child that %s (serve --processes 2), it is replaced and nothing is lost',
  async (_what, isWorker) => {
    const database = await newDatabase();
    const receiver = await newReceiver();
    const port = String(await freePort());
    const posthorn = await startTestPosthorn({ database, args: ['--processes', '2', '--port', port] });
    /** Only children that deliver own shards and register. */
    const workers = async () => {
      const rows = await database.query<{ name: string }>('select name from posthorn.workers');
      return rows.map(({ name }) => Number(name.split(':').at(-1)));
    };
    const victim = await eventually('both children run, and one of them owns the shards', async () => {
      const [children, [worker]] = await Promise.all([childrenOf(posthorn.pid), workers()]);
      if (children.length !== 2 || worker === undefined) return null;
      expect(children).toContain(worker);
      return isWorker ? worker : children.find((pid) => pid !== worker);
    });
    const tenants = Array.from({ length: 10 }, (_, n) => `tenant-${n}`);
    for (const tenant of tenants) await createEndpoint(posthorn, { url: receiver.url, tenant });
    process.kill(victim, 'SIGKILL');
    const events: string[] = [];
    for (const tenant of tenants) {
      // Until another process listens, a connection is refused, or goes to the dead process and gets no answer
      // (node:cluster). An event without an answer was not accepted, so publish it again.
      const event = { tenant, type: 'a.b', data: 1 };
      await eventually('an event is accepted', async () => {
        const answer = await posthorn.api('POST', '/v1/events', event, { timeoutMs: 1000 }).catch(() => null);
        if (answer?.status === 202) events.push(answer.body.id);
        return answer?.status === 202;
      });
    }
    for (const id of events) await untilDeliveries(posthorn, id, 'delivered');
    await eventually('another child has taken its place', async () => {
      const [children, registered] = await Promise.all([childrenOf(posthorn.pid), workers()]);
      return children.length === 2 && registered.length === 1 && !children.includes(victim);
    });
    await posthorn.stop();
    expect(await workers()).toEqual([]);
  },
);
