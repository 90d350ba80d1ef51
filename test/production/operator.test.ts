/**
 * What an operator does with the pages of docs/operate, one after the other: two nodes on their own PostgreSQL behind a
 * transaction pooler, a restart of both in turn, a backup, a restore, `posthorn doctor`.
 */

import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startBalancer } from '../support/balancer.ts';
import { missingClusters, openClusters, PROGRAMS, urlOn } from '../support/clusters.ts';
import { readBlocks } from '../support/doc-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { needs } from '../support/needs.ts';
import { startPrintedPgbouncer, whyNoPgbouncer } from '../support/pgbouncer.ts';
import {
  arrivals,
  createEndpoint,
  MAIN,
  newReceiver,
  publish,
  startTestPosthorn,
  TEST_SETTINGS,
  type TestPosthorn,
  untilDeliveries,
} from '../support/posthorn.ts';
import { type PrintedOptions, runPrinted } from '../support/printed-commands.ts';
import { startProcess } from '../support/processes.ts';
import { publishWithUndici } from '../support/publisher.ts';

const [dump, restore] = readBlocks('docs/operate/backup.md')
  .filter(({ language }) => language === 'sh')
  .map(({ text }) => text);

/** PostgreSQL, PgBouncer with the printed settings, and the settings of both nodes. */
async function setUp() {
  const clusters = await openClusters();
  onTestFinished(() => clusters.remove());
  const port = await freePort();
  await clusters.create('main', port);
  const direct = urlOn(port);
  const pooler = await startPrintedPgbouncer(direct);
  onTestFinished(() => pooler.stop());
  const backup = path.join(clusters.directory, 'backup');
  await mkdir(backup);
  const env = { DATABASE_URL: pooler.urlOf(direct), POSTHORN_DIRECT_DATABASE_URL: direct };
  const printed: PrintedOptions = {
    env: { PATH: `${PROGRAMS}:${process.env.PATH}`, DATABASE_URL: direct },
    replace: { '/backup/': `${backup}/` },
  };
  return { env, printed };
}

test(
  'an operator starts two nodes behind a pooler, restarts them in turn, and restores a backup',
  needs(missingClusters ?? whyNoPgbouncer),
  async () => {
    const { env, printed } = await setUp();
    const posthorn = async (...args: string[]) => {
      const child = startProcess([MAIN, ...args], { env: { ...TEST_SETTINGS, ...env } });
      return { code: await child.ended, output: child.output() };
    };
    expect(await posthorn('migrate')).toMatchObject({ code: 0 });

    const ports = [await freePort(), await freePort()];
    const start = (port: number): Promise<TestPosthorn> =>
      startTestPosthorn({
        database: { url: env.DATABASE_URL },
        env: { ...env, PORT: String(port), POSTHORN_LAME_DUCK_MS: '1500ms' },
      });
    const nodes = await Promise.all(ports.map(start));
    const stopNodes = async (): Promise<void> => {
      await Promise.all(nodes.map((node) => node.stop()));
    };
    onTestFinished(stopNodes);
    const examined = await posthorn('doctor');
    expect(examined.output).toContain('leases, LISTEN and NOTIFY use POSTHORN_DIRECT_DATABASE_URL');
    expect(examined.code, examined.output).toBe(0);

    const receiver = await newReceiver();
    await createEndpoint(nodes[0]!, { url: receiver.url, tenant: 'a', max_in_flight: 50 });
    const balancer = await startBalancer(ports);
    onTestFinished(() => balancer.close());
    const accepted: string[] = [];
    const publisher = publishWithUndici(balancer, (id) => accepted.push(id));
    for (const [index, port] of ports.entries()) {
      await eventually('both are ready', () => balancer.ready.length === 2);
      const before = accepted.length;
      await eventually('events are accepted', () => accepted.length > before + 50);
      await nodes[index]!.stop();
      nodes[index] = await start(port);
    }
    expect((await publisher.stop()).failures).toEqual([]);
    await eventually('all arrive', () => {
      const arrived = arrivals(receiver.requests);
      return accepted.every((id) => arrived.has(id));
    });

    expect(Number(await runPrinted(dump!, printed))).toBeGreaterThan(20);
    const lost = await publish(nodes[0]!, { type: 'a.b', tenant: 'a', data: {} });
    await untilDeliveries(nodes[0]!, lost.id, 'delivered');
    await stopNodes();
    await runPrinted(restore!, printed);
    for (const [index, port] of ports.entries()) nodes[index] = await start(port);
    const [node] = nodes as [TestPosthorn];
    await untilDeliveries(node, accepted[0]!, 'delivered');
    expect((await node.api('GET', `/v1/events/${lost.id}`)).status).toBe(404);
    const event = await publish(node, { type: 'a.b', tenant: 'a', data: {} });
    await untilDeliveries(node, event.id, 'delivered');
    const after = await posthorn('doctor');
    expect(after.code, after.output).toBe(0);
  },
);
