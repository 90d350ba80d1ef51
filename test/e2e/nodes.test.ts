import { expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { arrivals, createEndpoint, newReceiver, publish, startTestPosthorn } from '../support/posthorn.ts';
import { readScrape } from '../support/scrape.ts';

const env = { POSTHORN_PEER_LISTEN: '127.0.0.1:0' };

test('SCL-2: a node hands what it accepts directly to the node that delivers it, and through the database when that one dies', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const receiver = await newReceiver();
  const accepting = await startTestPosthorn({ database, env, args: ['--role', 'api'] });
  const delivering = await startTestPosthorn({ database, env });
  await createEndpoint(accepting, { url: receiver.url, tenant: 'acme' });
  const handedOn = async (to: string): Promise<number> =>
    readScrape((await accepting.api('GET', '/metrics')).text).value('posthorn_deliveries_handed_on_total', {
      to,
    });
  const ids: string[] = [];
  const publishOne = async () => {
    ids.push((await publish(accepting, { tenant: 'acme', type: 'a.b', data: ids.length })).id);
  };
  await eventually('the nodes are connected', async () => {
    await publishOne();
    return (await handedOn('sibling')) > 0;
  });
  const notified = await handedOn('notify');
  for (let n = 0; n < 20; n += 1) await publishOne();
  expect(await handedOn('notify')).toBe(notified);
  await receiver.waitFor(ids.length);

  await delivering.kill('SIGKILL');
  await eventually('the dead node gets nothing more', async () => {
    await publishOne();
    return (await handedOn('notify')) > notified;
  });
  const next = await startTestPosthorn({ database, env });
  await eventually('everything has arrived', () => arrivals(receiver.requests).size === ids.length);
  await next.stop();
  await accepting.stop();
});
