/**
 * Runs every supported PostgreSQL version: migrate, deliver, publish in a transaction, relay, list, doctor. Migrates with
 * the commands of docs/operate/postgresql-versions.md.
 */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fillEndpoints, fillHistory } from '../../bench/fill-history.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { readMigrations } from '../../src/postgres/migrate.ts';
import { listDeadLetters } from '../../src/postgres/queries/dead-letters.ts';
import { listEndpoints } from '../../src/postgres/queries/endpoints.ts';
import { listEvents } from '../../src/postgres/queries/events.ts';
import { listDeliveries } from '../../src/postgres/queries/list-deliveries.ts';
import { MAX_EXAMINED } from '../../src/postgres/queries/list-query.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { readBlocks } from '../support/doc-blocks.ts';
import { needs } from '../support/needs.ts';
import { watchPlans } from '../support/plans.ts';
import {
  type PostgresqlServer,
  SUPPORTED,
  startPostgresql,
  whyMissing,
} from '../support/postgresql-versions.ts';
import {
  createEndpoint,
  MAIN,
  newReceiver,
  publish,
  startTestPosthorn,
  TEST_SETTINGS,
  untilDeliveries,
} from '../support/posthorn.ts';
import { runPrinted } from '../support/printed-commands.ts';
import { startProcess } from '../support/processes.ts';
import type { Receiver } from '../support/receiver.ts';
import { newShop, startRelay } from '../support/relay.ts';

const [migrateAndExamine] = readBlocks('docs/operate/postgresql-versions.md').map(({ text }) => text);

for (const major of SUPPORTED) {
  describe(`PostgreSQL ${major}`, needs(whyMissing(major)), () => {
    let server: PostgresqlServer;
    let database: TestDatabase;
    const run = async (...args: string[]) => {
      const child = startProcess([MAIN, ...args], { env: { ...TEST_SETTINGS, DATABASE_URL: database.url } });
      return { code: await child.ended, output: child.output() };
    };

    beforeAll(async () => {
      server = await startPostgresql(major);
      database = await createTestDatabase({ empty: true, serverUrl: server.url });
    });
    afterAll(async () => {
      await database?.drop();
      await server?.stop();
    });

    test('`posthorn migrate` creates the schema', async () => {
      const names = (await readMigrations()).map(({ name }) => name);
      const output = await runPrinted(migrateAndExamine!, {
        env: TEST_SETTINGS,
        replace: { 'postgres://posthorn@db.internal/posthorn': database.url },
        // `doctor` reports that nobody has created partitions yet.
        mayFail: true,
      });
      expect(output).toContain(`Applied: ${names.join(', ')}`);
      expect(output).toContain(`PostgreSQL ${major}.`);
      expect((await run('migrate')).output).toContain('The schema is up to date.');
      const [{ storage }] = (await database.query(
        `select attstorage as storage from pg_attribute
          where attrelid = 'posthorn.stats_journal'::regclass and attname = 'counts'`,
      )) as [{ storage: string }];
      expect(storage, 'external').toBe('e');
    });

    test('events are delivered whether they were posted, published in a transaction or relayed', async () => {
      const tenant = `t${randomBytes(3).toString('hex')}`;
      const posthorn = await startTestPosthorn({ database });
      try {
        const receiver = await newReceiver();
        await createEndpoint(posthorn, { url: receiver.url, tenant });
        const posted = await publish(posthorn, { type: 'a.posted', tenant, data: {} });
        await untilDeliveries(posthorn, posted.id, 'delivered');
        await database.query("select posthorn.publish('a.published', '{}', $1)", [tenant]);
        for (const mode of ['poll', 'cdc'] as const) {
          const shop = await newShop(mode, { serverUrl: server.url });
          const args = ['--mode', mode, '--slot', shop.slot];
          const relay = await startRelay({ from: shop.url, to: database.url, args });
          await shop.query('insert into posthorn_outbox (tenant, type, data) values ($1, $2, $3)', [
            tenant,
            `a.${mode}`,
            '{}',
          ]);
          await arrived(receiver, `a.${mode}`);
          await relay.kill('SIGTERM');
        }
        await arrived(receiver, 'a.published');
        const { output, code } = await run('doctor');
        expect(output).toContain(`PostgreSQL ${major}.`);
        expect(code, output).toBe(0);
      } finally {
        await posthorn.stop();
      }
    });

    test('lists read a bounded number of rows, through indexes', async () => {
      await fillEndpoints(database.query, 200);
      await fillHistory(database.query, {
        deliveries: 30_000,
        spanMs: 20 * 3_600_000,
        perMille: { dead: 150, waiting: 150, discarded: 5, skipped: 5 },
        attemptsPercent: 20,
        dataBytes: 20,
      });
      const connections = openDatabase({
        connectionString: database.url,
        apiConnections: 1,
        dispatchConnections: 1,
        onIdleError: () => {},
      });
      try {
        const { pool, take } = watchPlans(connections.pool('api'));
        const page = { from: null, before: null, limit: 51 };
        for (const tenant of [null, 'tenant-00', 'nobody']) {
          const place = { tenant, endpointId: null, eventId: null, type: null };
          for (const status of [null, 'waiting', 'delivered', 'dead'] as const)
            await listDeliveries(pool, { ...place, status, ...page });
          await listEvents(pool, { tenant, type: null, ...page });
          await listDeadLetters(pool, { ...place, reason: null, ...page });
          await listEndpoints(pool, { tenant, before: null, limit: 51 });
        }
        const visited = take().visited.filter(({ table }) =>
          ['events', 'deliveries', 'dead_letters', 'attempts', 'queue'].includes(table),
        );
        expect(visited.length).toBeGreaterThan(20);
        for (const { scan, rows } of visited) {
          expect(rows, scan).toBeLessThanOrEqual(MAX_EXAMINED + 50 * page.limit);
          if (rows > 0) expect(scan).toMatch(/^Index/);
        }
      } finally {
        await connections.close();
      }
    });
  });
}

const arrived = (receiver: Receiver, type: string) =>
  receiver.waitFor(({ body }) => String(body).includes(`"${type}"`));
