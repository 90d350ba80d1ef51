/** A standby takes the place of the primary under running servers: what docs/operate/failover.md says. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Clusters, missingClusters, openClusters, urlOn } from '../support/clusters.ts';
import { eventually } from '../support/eventually.ts';
import { needs } from '../support/needs.ts';
import {
  arrivals,
  createEndpoint,
  expectStatus,
  freePort,
  newReceiver,
  publish,
  startTestPosthorn,
  type TestPosthorn,
} from '../support/posthorn.ts';

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
  await clusters.create('primary', port);
  const standby = clusters.pathOf('standby');
  const source = `${urlOn(port, 'postgres')}?application_name=standby`;
  await clusters.run('pg_basebackup', '-d', source, '-D', standby, '-R', '-X', 'stream', '-c', 'fast');
  await clusters.start('standby', standbyPort);
  return { clusters, port, standbyPort };
}

/** The standby becomes the primary, at the primary's address. */
async function failOver({ clusters, port }: Pair): Promise<void> {
  const standby = clusters.pathOf('standby');
  await clusters.run('pg_ctl', '-D', standby, '-w', 'promote');
  await clusters.run(
    'psql',
    '-d',
    urlOn(port, 'postgres'),
    '-c',
    'alter system reset synchronous_standby_names',
  );
  await clusters.run('psql', '-d', urlOn(port, 'postgres'), '-c', 'select pg_reload_conf()');
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
    await psql("alter system set synchronous_standby_names = 'standby'");
    await psql('select pg_reload_conf()');
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
});
