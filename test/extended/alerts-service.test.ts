/**
 * OBS-2 on real values, for problems of Posthorn itself: a node with three processes, of which one is suspended, and a
 * locked database. promtool decides which alerts fire. See alerts.test.ts.
 */

import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { newEventId } from '../../src/domain/ids.ts';
import * as alerts from '../support/alerts.ts';
import { ABOUT_TIME, expectAlerts, judged, named } from '../support/alerts.ts';
import { newArchive } from '../support/archive-folder.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  startTestPosthorn,
  type TestPosthorn,
} from '../support/posthorn.ts';
import { createDay, startOfDay } from '../support/retention.ts';
import type { Scrape } from '../support/scrape.ts';

let database: TestDatabase;
let node: TestPosthorn;

beforeAll(async () => {
  database = await createTestDatabase();
  node = await startTestPosthorn({
    database,
    args: ['--processes', '3', '--port', String(await freePort())],
    env: { POSTHORN_MEASURE_MS: '500', POSTHORN_DATABASE_POOL_SIZE: '2' },
  });
});
afterAll(async () => {
  await node?.stop();
  await database?.drop();
});

const scrape = () => alerts.scrape(node);
const untilScrape = (what: string, holds: (scrape: Scrape) => boolean) =>
  alerts.untilScrape(node, what, holds);
const isWell = (now: Scrape): boolean =>
  now.value('posthorn_shards_owned') === 256 && now.value('posthorn_ownership_proven') === 2;

/**
 * Locks tables, as a change by hand would. Returns a function that unlocks them; they are also unlocked after the test.
 */
async function lock(tables: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  let ending: Promise<void> | undefined;
  const end = () => {
    ending ??= client.end();
    return ending;
  };
  onTestFinished(end);
  await client.query('begin');
  await client.query(`lock table ${tables} in access exclusive mode`);
  return end;
}

judged(
  'OBS-2: a suspended child triggers the alerts of missing processes and unowned shards, and afterwards that of a late event loop',
  async () => {
    const before = await untilScrape('both own their half', isWell);
    const [worker] = await database.query<{ name: string }>(
      'select name from posthorn.workers where not stopping limit 1',
    );
    const pid = Number(worker!.name.split(':').at(-1));
    onTestFinished(() => void process.kill(pid, 'SIGCONT'));
    /** Suspends the process for one scrape, as an overloaded machine would. */
    const stopForAScrape = async (): Promise<Scrape> => {
      process.kill(pid, 'SIGSTOP');
      const scraped = await scrape();
      process.kill(pid, 'SIGCONT');
      return scraped;
    };
    const stopped = await stopForAScrape();
    expect(stopped.value('posthorn_processes', { state: 'expected' })).toBe(3);
    expect(stopped.value('posthorn_processes', { state: 'answered' })).toBe(2);
    const late = await eventually('a scrape shows how late it was', async () => {
      const now = await scrape();
      if (now.value('posthorn_event_loop_delay_seconds', { stat: 'p99' }) > 0.5) return now;
      // The next measurement came before the scrape: try again.
      await stopForAScrape();
      return null;
    });
    await expectAlerts([before, before], { silent: [`alertname!~"${ABOUT_TIME}"`] });
    await expectAlerts([before, stopped], {
      firing: ['PosthornProcessMissing', 'PosthornShardsUnowned'].map(named),
    });
    await expectAlerts([before, late], { firing: [named('PosthornEventLoopLate')] });
  },
);

judged(
  'OBS-2: a lease that cannot be renewed triggers the alerts of expired leases and internal problems',
  async () => {
    const before = await untilScrape('all is well', isWell);
    const unlock = await lock('posthorn.workers');
    const problems = (now: Scrape) => now.value('posthorn_internal_problems_total');
    const after = await untilScrape(
      'neither may send',
      (now) => now.value('posthorn_ownership_proven') === 0 && problems(now) > problems(before),
    );
    await unlock();
    await expectAlerts([before, after], {
      firing: ['PosthornUnproven', 'PosthornInternalProblems'].map(named),
      silent: [named('PosthornShardsUnowned')],
    });
  },
);

judged(
  'OBS-2, SCL-5: a region that an endpoint names and that has no worker triggers its alert',
  async () => {
    const before = await untilScrape('all is well', isWell);
    // As the first worker of the region did, before it died.
    await database.query("select posthorn.create_region('eu')");
    const endpoint = { url: 'http://127.0.0.1:9/', tenant: 'acme', region: 'eu' };
    const { body } = await expectStatus(node.api('POST', '/v1/endpoints', endpoint), 201);
    const after = await untilScrape('the region is measured', (now) =>
      now.samples.some(({ name }) => name === 'posthorn_region_workers'),
    );
    await expectStatus(node.api('DELETE', `/v1/endpoints/${body.id}`), 204);
    await expectAlerts([before, after], {
      firing: [named('PosthornRegionWithoutWorkers')],
      silent: [named('PosthornShardsUnowned')],
    });
  },
);

judged(
  'OBS-2: readers that use up the connections trigger the alerts of the pool and of old measurements',
  async () => {
    await untilScrape('all is well', isWell);
    // The tables that readers query and that are measured.
    const unlock = await lock('posthorn.events, posthorn.dead_letters');
    let isLocked = true;
    const readRepeatedly = async (): Promise<void> => {
      while (isLocked) await node.api('GET', '/v1/events');
    };
    // More readers than the process has connections.
    const readers = Array.from({ length: 12 }, readRepeatedly);
    const isExhausted = (now: Scrape) => now.value('posthorn_pool_waiting', { pool: 'api' }) > 0;
    const age = ({ samples }: Scrape) =>
      Math.max(
        ...samples
          .filter(({ name }) => name === 'posthorn_measurement_age_seconds')
          .map(({ value }) => value),
      );
    const before = await untilScrape('queries wait for a connection', isExhausted);
    const after = await untilScrape(
      'they do, and a child has measured nothing for two seconds more',
      (now) => isExhausted(now) && age(now) > age(before) + 2,
    );
    isLocked = false;
    await unlock();
    await Promise.all(readers);
    await expectAlerts([before, after], {
      firing: ['PosthornPoolExhausted', 'PosthornMeasurementsOld'].map(named),
    });
  },
);

judged('OBS-2: a process that runs out of descriptors triggers the alert of shortages', async () => {
  const own = await createTestDatabase();
  onTestFinished(() => own.drop());
  const server = await startTestPosthorn({ database: own, descriptors: 110 });
  onTestFinished(() => server.stop());
  const receiver = await newReceiver();
  // Idle connections would keep their descriptors for another 4 s.
  receiver.answer({ headers: { connection: 'close' } });
  receiver.hang();
  await createEndpoint(server, { url: receiver.url, tenant: 'acme', max_in_flight: 200, timeout_ms: 30_000 });
  const before = await alerts.scrape(server);
  const events = Array.from({ length: 90 }, (_, data) => ({ type: 'order.created', tenant: 'acme', data }));
  await expectStatus(server.api('POST', '/v1/events/batch', { events }), 202);
  await eventually('descriptors run out', () => server.output().includes('EMFILE'));
  receiver.release();
  const after = await alerts.untilScrape(
    server,
    'the shortage is counted',
    (now) => now.value('posthorn_local_shortages_total', { code: 'EMFILE' }) > 0,
  );
  await receiver.waitFor(90, 30_000);
  await expectAlerts([before, after], { firing: [named('PosthornLocalShortage')] });
  await expectAlerts([before, before], { silent: [named('PosthornLocalShortage')] });
});

judged('LIF-1: a disk that fills and partitions that cannot be dropped trigger their alerts', async () => {
  const before = await untilScrape('all is well', isWell);
  const unlock = await lock('posthorn.tasks');
  const hourAgo = Date.now() - 61 * 60_000;
  await createDay(database, startOfDay(900));
  const { body } = await expectStatus(node.api('GET', '/v1/storage'), 200);
  // As much as fills the disk in ten days, at the rate of one hour.
  const megabytes = Math.ceil(body.disk.free_bytes / (24 * 10) / 1e6);
  const [partition] = await database.query<{ name: string }>(
    "select name from posthorn.partitions where parent = 'events' and now() between from_at and to_at",
  );
  await database.query(`alter table posthorn.${partition!.name} alter column data set storage external`);
  for (let n = 0; n < megabytes; n += 1)
    await database.query(
      "insert into posthorn.events (id, tenant, type, data, deliveries) values ($1, 'a', 'a.b', convert_to(repeat('x', 1000000), 'UTF8'), 0)",
      [newEventId(hourAgo)],
    );
  const after = await untilScrape('both are seen', (now) => {
    const fullIn = now.samples.find(({ name }) => name === 'posthorn_storage_full_in_seconds')?.value;
    return (
      fullIn !== undefined && fullIn < 14 * 86_400 && now.value('posthorn_retention_overdue_seconds') > 0
    );
  });
  await unlock();
  await expectAlerts([before, after], {
    firing: ['PosthornDiskFull', 'PosthornRetentionOverdue'].map(named),
  });
});

judged('LIF-2: an archive that cannot be written triggers its alert', async () => {
  const { folder, url } = await newArchive();
  await writeFile(path.join(folder, 'archive.json'), '{"deployment_id":"another"}');
  const own = await createTestDatabase();
  onTestFinished(() => own.drop());
  await createDay(own, startOfDay(31));
  const server = await startTestPosthorn({
    database: own,
    env: {
      POSTHORN_ARCHIVE_URL: url,
      POSTHORN_RETENTION_EVENTS: '30',
      POSTHORN_UPKEEP_MS: '200ms',
      POSTHORN_MEASURE_MS: '200',
    },
  });
  onTestFinished(() => server.stop());
  const failuresIn = (now: Scrape): number =>
    now.samples.find(
      ({ name, labels }) => name === 'posthorn_archive_runs_total' && labels.result === 'failed',
    )?.value ?? 0;
  const before = await alerts.untilScrape(server, 'the archive has failed', (now) => failuresIn(now) > 0);
  const after = await alerts.untilScrape(
    server,
    'it has failed again',
    (now) => failuresIn(now) > failuresIn(before),
  );
  await expectAlerts([before, after], { firing: [named('PosthornArchiveFailing')] });
});

judged('OBS-2: a server that is down triggers its alert', async () => {
  const before = await untilScrape('all is well', isWell);
  await node.stop();
  await expect(fetch(`${node.url}/metrics`)).rejects.toThrow('fetch failed');
  await expectAlerts([before, null], { firing: [named('PosthornDown')] });
});
