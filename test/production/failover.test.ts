/**
 * A standby takes the place of the primary under running servers: what docs/operate/failover.md says, with its commands
 * as printed. Only addresses and paths differ.
 */

import { describe, expect, onTestFinished, test } from 'vitest';
import { ensureServerUser, isRoot } from '../../src/postgres/embedded/server-user.ts';
import { type Clusters, missingClusters, openClusters, PROGRAMS, urlOn } from '../support/clusters.ts';
import { readBlocks } from '../support/doc-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { needs } from '../support/needs.ts';
import {
  arrivals,
  createEndpoint,
  expectStatus,
  MAIN,
  newReceiver,
  publish,
  startTestPosthorn,
  TEST_SETTINGS,
  type TestPosthorn,
} from '../support/posthorn.ts';
import { runPrinted } from '../support/printed-commands.ts';
import { startProcess } from '../support/processes.ts';

const blocks = readBlocks('docs/operate/failover.md');
const createReplicator = blocks.find(({ language }) => language === 'sql')!.text;
const [setUp, promote] = blocks.filter(({ language }) => language === 'sh').map(({ text }) => text);
/** The first part runs on the standby, the second one on the primary. */
const [onStandby, onPrimary] = setUp!.split('\n\n');

interface Pair {
  readonly clusters: Clusters;
  /** Of the primary, and after the failover of the standby: as a virtual address does. */
  readonly port: number;
  readonly standbyPort: number;
}

async function startPair(): Promise<Pair> {
  const clusters = await openClusters();
  onTestFinished(() => clusters.remove());
  const [port, standbyPort] = [await freePort(), await freePort()];
  // In the file, because the printed command that starts the standby has no options.
  await clusters.create('primary', port, {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: clusters.directory,
  });
  await clusters.run('psql', '-d', urlOn(port, 'postgres'), '-c', createReplicator);
  const pair = { clusters, port, standbyPort };
  await runOn(standbyPort, onStandby!, pair);
  clusters.onStarted('standby');
  return pair;
}

/** Runs commands of the page. `PGPORT` is the port of the machine that they run on. */
async function runOn(
  ownPort: number,
  commands: string,
  { clusters, port }: Pair,
  standby = 'standby',
): Promise<string> {
  return runPrinted(commands, {
    env: {
      PATH: `${PROGRAMS}:${process.env.PATH}`,
      PGHOST: '127.0.0.1',
      PGPORT: String(ownPort),
      PGUSER: 'posthorn',
      PGDATABASE: 'postgres',
    },
    replace: {
      'postgres://replicator@db-1.internal/postgres': urlOn(port, 'postgres').replace(
        'posthorn@',
        'replicator@',
      ),
      '/var/lib/postgresql/15/main': clusters.pathOf(standby),
      '/var/lib/postgresql/15': clusters.directory,
    },
    runAs: isRoot() ? await ensureServerUser() : undefined,
  });
}

/** The standby becomes the primary, at the primary's address. */
async function failOver(pair: Pair): Promise<void> {
  await runOn(pair.port, promote!, pair);
}

async function serve(port: number): Promise<TestPosthorn> {
  const posthorn = await startTestPosthorn({ database: { url: urlOn(port) } });
  onTestFinished(() => posthorn.stop());
  return posthorn;
}

const isReady = async (posthorn: TestPosthorn): Promise<boolean> =>
  (await posthorn.api('GET', '/readyz')).status === 200;

describe('a failover of PostgreSQL', needs(missingClusters), () => {
  test('to an asynchronous standby that was behind: endpoints and events are those of the standby', async () => {
    const pair = await startPair();
    const { clusters, port, standbyPort } = pair;
    const posthorn = await serve(port);
    const [before, lost, after] = [await newReceiver(), await newReceiver(), await newReceiver()];
    const { id } = await createEndpoint(posthorn, { url: before.url, tenant: 'a' });
    await publish(posthorn, { type: 'order.created', tenant: 'a', data: 1 });
    await before.waitFor(1);
    await eventually('the standby has it', async () => {
      const count = 'select count(*) from posthorn.deliveries';
      const shown = await clusters.run('psql', '-At', '-d', urlOn(standbyPort), '-c', count).catch(() => '');
      return shown.trim() === '1';
    });

    await clusters.stop('standby', 'fast');
    await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { url: lost.url }), 200);
    const forgotten = await publish(posthorn, { type: 'order.created', tenant: 'a', data: 2 });
    await lost.waitFor(1);

    await clusters.stop('primary', 'immediate');
    await clusters.start('standby', port);
    await failOver(pair);
    await eventually('it is ready again', () => isReady(posthorn), { timeoutMs: 30_000 });
    expect((await posthorn.api('GET', `/v1/events/${forgotten.id}`)).status).toBe(404);
    await publish(posthorn, { type: 'order.created', tenant: 'a', data: 3 });
    await before.waitFor(2);
    await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { url: after.url }), 200);
    await publish(posthorn, { type: 'order.created', tenant: 'a', data: 4 });
    await after.waitFor(1);
    expect([before.requests.length, lost.requests.length]).toEqual([2, 1]);
    await eventually('the log says what happened', () =>
      ['the timeline of the database changed', 'the database was restored to an earlier time'].every((line) =>
        posthorn.output().includes(line),
      ),
    );
  });

  test('to a synchronous standby loses no event that was answered 202', async () => {
    const pair = await startPair();
    const { clusters, port } = pair;
    const psql = (text: string) => clusters.run('psql', '-At', '-d', urlOn(port, 'postgres'), '-c', text);
    expect(await runOn(port, onPrimary!, pair)).toContain('standby');
    await eventually('the standby is synchronous', async () =>
      (await psql('select sync_state from pg_stat_replication')).includes('sync'),
    );
    const posthorn = await serve(port);
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant: 'a' });

    const accepted: string[] = [];
    let stopping = false;
    const publishing = Array.from({ length: 8 }, async () => {
      while (!stopping) {
        const answer = await posthorn
          .api('POST', '/v1/events', { type: 'order.created', tenant: 'a', data: {} })
          .catch(() => null);
        if (answer?.status === 202) accepted.push(answer.body.id);
      }
    });
    await eventually('events are accepted', () => accepted.length > 200);
    // The whole machine is gone at once: the standby learns nothing more.
    await clusters.stop('primary', 'immediate');
    await clusters.stop('standby', 'fast');
    await clusters.start('standby', port);
    await failOver(pair);
    const beforeFailover = accepted.length;
    await eventually('events are accepted again', () => accepted.length > beforeFailover + 100, {
      timeoutMs: 60_000,
    });
    stopping = true;
    await Promise.all(publishing);
    await eventually('all have arrived', () => {
      const arrived = arrivals(receiver.requests);
      return accepted.every((id) => arrived.has(id));
    });
  });

  test('while a synchronous standby is not connected, /readyz and doctor name it; afterwards the waiting event is delivered', async () => {
    const clusters = await openClusters();
    onTestFinished(() => clusters.remove());
    const port = await freePort();
    await clusters.create('primary', port, {
      listen_addresses: '127.0.0.1',
      unix_socket_directories: clusters.directory,
    });
    const posthorn = await serve(port);
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant: 'a' });
    const psql = (text: string) => clusters.run('psql', '-d', urlOn(port, 'postgres'), '-c', text);
    await psql("alter system set synchronous_standby_names = 'standby'");
    await psql('select pg_reload_conf()');

    // Its commit waits, whatever the producer is told.
    const published = posthorn.api('POST', '/v1/events', { type: 'order.created', tenant: 'a', data: 1 });
    await eventually('it is not ready, because of the standby', async () => {
      const { status, body } = await posthorn.api('GET', '/readyz');
      return status === 503 && String(body.detail).includes('synchronous standby');
    });
    const doctor = startProcess([MAIN, 'doctor'], {
      env: { ...TEST_SETTINGS, DATABASE_URL: urlOn(port) },
    });
    expect(await doctor.ended).toBe(1);
    expect(doctor.output()).toMatch(
      /Commits wait for a synchronous standby that is not connected \(standby\)/,
    );

    await psql('alter system reset synchronous_standby_names');
    await psql('select pg_reload_conf()');
    await eventually('it is ready again', () => isReady(posthorn), { timeoutMs: 30_000 });
    await published;
    await receiver.waitFor(1);
  });

  test('to a standby that was copied from a primary with a synchronous standby: it waits for no standby', async () => {
    const pair = await startPair();
    const { clusters, port } = pair;
    await runOn(port, onPrimary!, pair);
    const nextPort = await freePort();
    await runOn(nextPort, onStandby!, pair, 'next');
    clusters.onStarted('next');
    const psql = (text: string) => clusters.run('psql', '-At', '-d', urlOn(nextPort, 'postgres'), '-c', text);
    expect((await psql('show synchronous_standby_names')).trim()).toBe('standby');
    await clusters.stop('primary', 'immediate');
    await clusters.stop('standby', 'immediate');
    await runOn(nextPort, promote!, pair, 'next');
    await eventually(
      'the setting is gone',
      async () => (await psql('show synchronous_standby_names')).trim() === '',
    );
    expect(await psql("set statement_timeout = '5s'; create table written ()")).not.toContain(
      'canceling wait',
    );
  });
});
