/** The commands of docs/operate/backup.md, as printed, on an installed PostgreSQL. Only the paths differ. */
import { execFile } from 'node:child_process';
import { chown, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ensureServerUser, isRoot } from '../../src/postgres/embedded/server-user.ts';
import { type Clusters, missingClusters, openClusters, PROGRAMS, urlOn } from '../support/clusters.ts';
import { readBlocks } from '../support/doc-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { needs } from '../support/needs.ts';
import {
  createEndpoint,
  freePort,
  newReceiver,
  publish,
  startTestPosthorn,
  type TestPosthorn,
  untilDeliveries,
} from '../support/posthorn.ts';

const [dump, restoreDump, takeBase, recover] = readBlocks('docs/operate/backup.md')
  .filter(({ language }) => language === 'sh')
  .map(({ text }) => text);

interface Place {
  readonly clusters: Clusters;
  readonly url: string;
  run(block: string, env?: Readonly<Record<string, string>>): Promise<string>;
}

async function newPlace(): Promise<Place> {
  const clusters = await openClusters();
  onTestFinished(() => clusters.remove());
  const runAs = isRoot() ? await ensureServerUser() : undefined;
  const backup = path.join(clusters.directory, 'backup');
  for (const folder of [backup, path.join(backup, 'wal')]) {
    await mkdir(folder);
    if (runAs !== undefined) await chown(folder, runAs.uid, runAs.gid);
  }
  const port = await freePort();
  await clusters.create('main', port, {
    // In the file, so that a restored cluster has them too.
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: clusters.directory,
    archive_mode: 'on',
    archive_command: `test ! -f ${backup}/wal/%f && cp %p ${backup}/wal/%f`,
  });
  const url = urlOn(port);
  const run = async (block: string, env: Readonly<Record<string, string>> = {}): Promise<string> => {
    const text = block
      .replaceAll('/var/lib/postgresql/15/main', clusters.pathOf('main'))
      .replaceAll('/backup/', `${backup}/`);
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', text], {
      cwd: '/',
      env: { PATH: `${PROGRAMS}:${process.env.PATH}`, DATABASE_URL: url, ...env },
      ...runAs,
    });
    return stdout;
  };
  return { clusters, url, run };
}

const serve = (url: string): Promise<TestPosthorn> => startTestPosthorn({ database: { url } });

/** One event is delivered, and one is retried until the receiver answers 200 again. */
async function setUp(url: string) {
  const posthorn = await serve(url);
  onTestFinished(() => posthorn.stop());
  const receiver = await newReceiver();
  await createEndpoint(posthorn, {
    url: receiver.url,
    tenant: 'a',
    retry: { schedule: [0, ...Array(40).fill(1)] },
    breaker: null,
  });
  const delivered = await publish(posthorn, { type: 'order.created', tenant: 'a', data: 1 });
  await untilDeliveries(posthorn, delivered.id, 'delivered');
  receiver.answer({ status: 503 });
  const waiting = await publish(posthorn, { type: 'order.created', tenant: 'a', data: 2 });
  await untilDeliveries(posthorn, waiting.id, 'retrying');
  return { posthorn, receiver, delivered, waiting };
}

async function expectStateOfBackup(
  url: string,
  { receiver, delivered, waiting }: Awaited<ReturnType<typeof setUp>>,
  lost: { readonly id: string },
): Promise<void> {
  const before = receiver.requests.length;
  const posthorn = await serve(url);
  try {
    expect((await posthorn.api('GET', `/v1/events/${lost.id}`)).status).toBe(404);
    await untilDeliveries(posthorn, delivered.id, 'delivered');
    // It was delivered after the backup: it is sent again, under the same id, and nothing else is.
    await untilDeliveries(posthorn, waiting.id, 'delivered');
    const again = receiver.requests.slice(before).map(({ headers }) => headers['webhook-id']);
    expect(again).toEqual([waiting.id]);
    expect((await publish(posthorn, { type: 'order.created', tenant: 'a', data: 4 })).deliveries).toBe(1);
  } finally {
    await posthorn.stop();
  }
}

describe('docs/operate/backup.md', needs(missingClusters), () => {
  test('a dump is taken from a running server, and restored', async () => {
    const { url, run } = await newPlace();
    const world = await setUp(url);
    expect(Number(await run(dump!))).toBeGreaterThan(20);
    world.receiver.answer({ status: 200 });
    const lost = await publish(world.posthorn, { type: 'order.created', tenant: 'a', data: 3 });
    for (const { id } of [world.waiting, lost]) await untilDeliveries(world.posthorn, id, 'delivered');
    await world.posthorn.stop();
    await run(restoreDump!);
    await expectStateOfBackup(url, world, lost);
  });

  test('a base backup and the archived log restore a moment', async () => {
    const { clusters, url, run } = await newPlace();
    const psql = (text: string) => clusters.run('psql', '-At', '-d', url, '-c', text);
    await run(takeBase!);
    const world = await setUp(url);
    const moment = (await psql('select clock_timestamp()')).trim();
    world.receiver.answer({ status: 200 });
    const lost = await publish(world.posthorn, { type: 'order.created', tenant: 'a', data: 3 });
    for (const { id } of [world.waiting, lost]) await untilDeliveries(world.posthorn, id, 'delivered');
    await world.posthorn.stop();
    // A fast stop archives what is left of the log.
    await run(recover!, { MOMENT: moment });
    await eventually('the recovery has ended', async () =>
      (await psql('select pg_is_in_recovery()')).startsWith('f'),
    );
    await expectStateOfBackup(url, world, lost);
  });
});
