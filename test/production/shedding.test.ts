/** Intake while the processes that deliver are the limit, with real processes and a real database. */

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readEnvironment } from '../../bench/process-figures.ts';
import { scrape } from '../support/alerts.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { NOT_LINUX, needs } from '../support/needs.ts';
import { createEndpoint, newReceiver, startTestPosthorn } from '../support/posthorn.ts';
import { childrenOf } from '../support/process-tree.ts';

const SHED_COMMIT_MS = 300;
const SLOW_COMMITS = { POSTHORN_SHED_COMMIT_MS: String(SHED_COMMIT_MS) };
/** The default limit. Commits that a stopped process waits for must not be the reason. */
const LATE_TIMERS = { POSTHORN_SHED_LOOP_DELAY_MS: '250ms' };

async function startNode(args: readonly string[], env: Readonly<Record<string, string>>) {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const receiver = await newReceiver();
  const posthorn = await startTestPosthorn({
    database,
    args: [...args, '--port', String(await freePort())],
    env,
  });
  onTestFinished(() => posthorn.stop());
  await createEndpoint(posthorn, { url: receiver.url, tenant: 'acme' });
  const publish = () => posthorn.api('POST', '/v1/events', { tenant: 'acme', type: 'a.b', data: 1 });
  const shedCount = async (reason: string) =>
    (await scrape(posthorn)).value('posthorn_events_shed_total', { reason });
  return {
    database,
    posthorn,
    /** Publishes until an event is rejected. */
    untilShed: () =>
      eventually('an event is rejected', async () => {
        const answers = await Promise.all(Array.from({ length: 10 }, publish));
        return answers.find(({ status }) => status === 503) ?? null;
      }),
    /** Publishes until nothing is rejected. */
    untilAdmitted: () =>
      eventually('everything is admitted', async () => {
        expect((await publish()).status).toBeOneOf([202, 503]);
        const shares = (await scrape(posthorn)).samples.filter(
          ({ name }) => name === 'posthorn_intake_share',
        );
        return shares.length > 0 && shares.every(({ value }) => value === 1);
      }),
    shedCount,
  };
}

type Node = Awaited<ReturnType<typeof startNode>>;

async function expectShedForDelivery({ untilShed, shedCount }: Node): Promise<void> {
  const rejected = await untilShed();
  expect(rejected.body.code).toBe('overloaded');
  expect(Number(rejected.headers['retry-after'])).toBeGreaterThan(0);
  expect(await shedCount('delivery')).toBeGreaterThan(0);
  expect(await shedCount('commits')).toBe(0);
}

/** Makes every commit of results take longer than the limit. Accepting does not write this table. */
async function slowDownResults(database: TestDatabase): Promise<() => Promise<unknown>> {
  await database.query(`
    create function public.take_long() returns trigger language plpgsql as
      $$ begin perform pg_sleep(${(SHED_COMMIT_MS + 100) / 1_000}); return null; end $$;
    create trigger take_long after insert on posthorn.deliveries
      for each statement execute function public.take_long()`);
  return () => database.query('drop trigger take_long on posthorn.deliveries');
}

/** Finds the child that delivers. */
async function findDelivering(pid: number): Promise<number> {
  for (const child of childrenOf(pid))
    if ((await readEnvironment(child, 'POSTHORN_CHILD_ROLE')) === 'worker') return child;
  throw new Error('no process delivers');
}

/** Stops the process for 300 ms at a time, again and again. The returned function ends that. */
function stopAgainAndAgain(pid: number): () => Promise<void> {
  let isEnding = false;
  const run = async (): Promise<void> => {
    while (!isEnding) {
      process.kill(pid, 'SIGSTOP');
      await sleep(300);
      process.kill(pid, 'SIGCONT');
      await sleep(30);
    }
  };
  const running = run();
  return () => {
    isEnding = true;
    return running;
  };
}

describe('ACC-8, DLV-3: events are rejected before deliveries suffer, and admitted again afterwards', () => {
  test.each([
    ['one process', []],
    ['processes that accept and deliver apart', ['--processes', '2']],
  ])('while results are recorded slowly: %s', async (_, args) => {
    const node = await startNode(args, SLOW_COMMITS);
    const speedUp = await slowDownResults(node.database);
    await expectShedForDelivery(node);
    await speedUp();
    await node.untilAdmitted();
  });

  test('while the process that delivers hardly gets to run', needs(NOT_LINUX), async () => {
    const node = await startNode(['--processes', '2'], LATE_TIMERS);
    const end = stopAgainAndAgain(await findDelivering(node.posthorn.pid));
    onTestFinished(end);
    await expectShedForDelivery(node);
    await end();
    await node.untilAdmitted();
  });
});
