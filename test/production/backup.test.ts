/** The commands of docs/operate/backup.md, as printed, on an installed PostgreSQL. Only the paths differ. */

import { execFile } from 'node:child_process';
import { chown, mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ensureServerUser, isRoot } from '../../src/postgres/embedded/server-user.ts';
import { type Clusters, missingClusters, openClusters, PROGRAMS, urlOn } from '../support/clusters.ts';
import { readBlocks } from '../support/doc-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { needs } from '../support/needs.ts';
import {
  createEndpoint,
  MAIN,
  newReceiver,
  publish,
  startTestPosthorn,
  type TestPosthorn,
  untilDeliveries,
} from '../support/posthorn.ts';

const [dump, restoreDump, takeBase, recover, endRecovery, exportExpunged, importExpunged] = readBlocks(
  'docs/operate/backup.md',
)
  .filter(({ language }) => language === 'sh')
  .map(({ text }) => text);

const [createReplicator] = sqlOf('docs/operate/failover.md');
const [, createTwoRoles] = sqlOf('docs/operate/roles.md');

function sqlOf(file: string): string[] {
  return readBlocks(file)
    .filter(({ language }) => language === 'sql')
    .map(({ text }) => text);
}

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
      .replaceAll('/backup/', `${backup}/`)
      .replaceAll(
        'postgres://replicator@db-1.internal/postgres',
        urlOn(port, 'postgres').replace('posthorn@', 'replicator@'),
      )
      .replaceAll(/^posthorn /gm, `'${process.execPath}' '${MAIN}' `);
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', text], {
      cwd: '/',
      env: {
        PATH: `${PROGRAMS}:${process.env.PATH}`,
        DATABASE_URL: url,
        PGHOST: '127.0.0.1',
        PGPORT: String(port),
        PGUSER: 'posthorn',
        PGDATABASE: 'postgres',
        ...env,
      },
      // That user may not read this checkout.
      ...(block.startsWith('posthorn ') ? {} : runAs),
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

  test('the owner of docs/operate/roles.md restores a dump with all grants, and keeps the schema if that fails', async () => {
    const { clusters, url, run } = await newPlace();
    const psql = (text: string) => clusters.run('psql', '-At', '-d', url, '-c', text);
    await psql(createTwoRoles!);
    const urlOf = (role: string) => url.replace('posthorn@', `${role}@`);
    const asOwner = { DATABASE_URL: urlOf('posthorn_owner') };
    await run('posthorn migrate', asOwner);
    const serveAndPublish = async (data: number) => {
      const posthorn = await serve(urlOf('posthorn_server'));
      const event = await publish(posthorn, { type: 'order.created', tenant: 'a', data });
      await posthorn.stop();
      return event;
    };
    await serveAndPublish(1);
    await run(dump!, asOwner);
    await serveAndPublish(2);
    await expect(run(restoreDump!, asOwner)).rejects.toThrow('permission denied for database');
    expect((await psql('select count(*) from posthorn.events')).trim()).toBe('2');
    await psql('grant create on database posthorn to posthorn_owner');
    await run(restoreDump!, asOwner);
    expect((await psql('select count(*) from posthorn.events')).trim()).toBe('1');
    await serveAndPublish(3);
    await psql('set role posthorn_owner; create table posthorn.later ()');
    const later = "select has_table_privilege('posthorn_server', 'posthorn.later', 'insert')";
    expect((await psql(later)).trim()).toBe('t');
  });

  test('what was expunged after the dump is expunged again', async () => {
    const { url, run } = await newPlace();
    const world = await setUp(url);
    await run(dump!);
    const path = `/v1/events/${world.waiting.id}`;
    expect((await world.posthorn.api('DELETE', `${path}/payload`)).status).toBe(204);
    await run(exportExpunged!);
    await world.posthorn.stop();
    await run(restoreDump!);
    expect(await run(importExpunged!)).toContain('1 of 1 were missing');
    const posthorn = await serve(url);
    onTestFinished(() => posthorn.stop());
    expect((await posthorn.api('GET', path)).body).toMatchObject({ data: null, expunged_by: 'tombstone' });
  });

  test.each([
    ['the archived log', true],
    ['a log of which the end is not archived', false],
  ])('a base backup and %s restore a moment', async (_log, isArchived) => {
    const { clusters, url, run } = await newPlace();
    const psql = (text: string) => clusters.run('psql', '-At', '-d', url, '-c', text);
    await psql(createReplicator!);
    await run(takeBase!);
    if (!isArchived) {
      await psql('select pg_switch_wal()');
      await eventually('the first part is archived', async () =>
        (await psql('select archived_count > 0 and failed_count = 0 from pg_stat_archiver')).startsWith('t'),
      );
      await psql("alter system set archive_command = 'false'");
      await psql('select pg_reload_conf()');
    }
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
    await run(endRecovery!);
    const settings = await readFile(path.join(clusters.pathOf('main'), 'postgresql.auto.conf'), 'utf8');
    expect(settings).not.toMatch(/recovery|restore/);
    await expectStateOfBackup(url, world, lost);
  });
});
