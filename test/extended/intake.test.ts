/** ACC-8: while the process or the database is the limit, a part of the intake is rejected, and deliveries go on. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import {
  type Answer,
  createEndpoint,
  newReceiver,
  publish,
  startTestPosthorn,
  type TestPosthorn,
} from '../support/posthorn.ts';

const LIMITS = { POSTHORN_SHED_LOOP_DELAY_MS: '100ms', POSTHORN_SHED_COMMIT_MS: '300ms' };

const eventOf = (data: unknown) => ({ tenant: 'acme', type: 'a.b', data });

/** Publishes one event after the other on several connections until `isOver`. Returns all answers. */
async function flood(
  posthorn: TestPosthorn,
  isOver: (answers: readonly Answer[]) => boolean,
): Promise<Answer[]> {
  const answers: Answer[] = [];
  const deadline = performance.now() + 60_000;
  const publisher = async (): Promise<void> => {
    while (!isOver(answers) && performance.now() < deadline) {
      answers.push(await posthorn.api('POST', '/v1/events', eventOf(answers.length)));
      await sleep(5);
    }
  };
  await Promise.all(Array.from({ length: 20 }, publisher));
  return answers;
}

const isShed = ({ status }: Answer): boolean => status === 503;

async function metricOf(posthorn: TestPosthorn, name: string): Promise<number> {
  const { text } = await posthorn.api('GET', '/metrics');
  return text
    .split('\n')
    .filter((line) => line.startsWith(name))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

describe('ACC-8: overload', () => {
  test('slow commits: a part of the events gets 503 with Retry-After; the outbox and all accepted events go on', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const receiver = await newReceiver();
    const posthorn = await startTestPosthorn({ database, env: LIMITS });
    onTestFinished(() => posthorn.stop());
    await createEndpoint(posthorn, { url: receiver.url, tenant: 'acme' });
    await database.query(`
      create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.5); return null; end $$;
      create trigger slow before insert on posthorn.events for each statement execute function slow()`);
    const answers = await flood(posthorn, (seen) => seen.filter(isShed).length >= 20);
    const shed = answers.filter(isShed);
    expect(shed.length).toBeGreaterThanOrEqual(20);
    expect(shed[0]!.headers['retry-after']).toMatch(/^[25]$/);
    expect(shed[0]!.body).toMatchObject({ code: 'overloaded' });
    expect(await metricOf(posthorn, 'posthorn_intake_share')).toBeLessThan(1);
    expect(await metricOf(posthorn, 'posthorn_events_shed_total{reason="commits"')).toBeGreaterThanOrEqual(
      20,
    );

    // What a transaction has committed is accepted while requests are rejected.
    await database.query(`select posthorn.publish('a.b', '"outbox"', 'acme')`);
    const accepted = answers.filter(({ status }) => status === 202).length;
    expect(accepted + shed.length).toBe(answers.length);
    await receiver.waitFor(accepted + 1, 60_000);
    expect(receiver.requests.some((request) => request.json().data === 'outbox')).toBe(true);

    await database.query('drop trigger slow on posthorn.events');
    await eventually('all events are admitted again', async () => {
      await posthorn.api('POST', '/v1/events', eventOf('again'));
      return (await metricOf(posthorn, 'posthorn_intake_share')) === 1;
    });
    await publish(posthorn, eventOf('last'));
  }, 120_000);

  test('a late event loop: a part of the events gets 503, and all are admitted again afterwards', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    // In this process, so that the test can block its event loop.
    const posthorn = await startTestPosthorn({ database, env: LIMITS, inProcess: true });
    onTestFinished(() => posthorn.stop());
    let isBlocking = true;
    const block = (): void => {
      for (const until = performance.now() + 200; performance.now() < until; );
      if (isBlocking) setImmediate(block);
    };
    block();
    const answers = await flood(posthorn, (seen) => seen.some(isShed));
    isBlocking = false;
    expect(answers.find(isShed)!.body).toMatchObject({ code: 'overloaded' });
    await eventually(
      'all events are admitted again',
      async () => (await metricOf(posthorn, 'posthorn_intake_share')) === 1,
    );
    await publish(posthorn, eventOf('last'));
  }, 120_000);
});
