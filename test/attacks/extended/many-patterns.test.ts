/** A tenant with very many patterns and invented event types neither blocks a process nor fills its memory. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { createManyEndpoints } from '../../support/many-endpoints.ts';
import {
  createEndpoint,
  expectStatus,
  newTenant,
  publish,
  startTestPosthorn,
  type TestPosthorn,
} from '../../support/posthorn.ts';

const URL_OF_NOBODY = 'http://127.0.0.1:9/';
/** A long type with as many segments as possible. */
const longType = (n: number): string => `${`t${n}`.padEnd(8, 'x')}${'.a'.repeat(50)}`;
const longPattern = (n: number): string => `${longType(n)}.*`;
const patternsOf = (endpoint: number): string[] =>
  Array.from({ length: 500 }, (_, n) => longPattern(endpoint * 500 + n));

let database: TestDatabase;
let posthorn: TestPosthorn;
beforeAll(async () => {
  database = await createTestDatabase();
  // In this process, so that the test can measure how long its event loop is blocked.
  posthorn = await startTestPosthorn({ database, inProcess: true });
});
afterAll(async () => {
  await posthorn?.stop();
  await database?.drop();
});

/** Returns the longest time that the event loop was blocked while `attack` ran, in milliseconds. */
async function blockedBy(attack: () => Promise<unknown>): Promise<number> {
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  await attack();
  await sleep(20);
  delay.disable();
  return delay.max / 1e6;
}

/** Creates endpoints of the tenant, and waits until the process knows them. */
async function createWithPatterns(tenant: string, count: number, hasSameUrl: boolean): Promise<void> {
  await createManyEndpoints(database, {
    tenant,
    url: URL_OF_NOBODY,
    count,
    eventsOf: patternsOf,
    hasSameUrl,
    paused: true,
  });
  await posthorn.api('POST', '/v1/events', { tenant, type: 'a.b', data: 0 });
  await eventually('the endpoints are known', async () => {
    const { body } = await posthorn.api('GET', `/v1/stats?tenant=${tenant}`);
    return body.now.endpoints === count;
  });
}

describe('100 endpoints with the same URL and 500 patterns each', () => {
  const tenant = newTenant();
  beforeAll(() => createWithPatterns(tenant, 100, true));

  test('a change that compares its patterns with all of them does not block the process', async () => {
    const events = patternsOf(1_000);
    const { id } = await createEndpoint(posthorn, { tenant, url: URL_OF_NOBODY, events });
    const blockedMs = await blockedBy(() =>
      expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { events: events.toReversed() }), 200),
    );
    // Comparing each pattern with each took 10 s or more.
    expect(blockedMs).toBeLessThan(500);
  });

  test('nor does it with POSTHORN_UNIQUE_ENDPOINTS, which compares with every endpoint', async () => {
    const env = { POSTHORN_UNIQUE_ENDPOINTS: 'on' };
    const unique = await startTestPosthorn({ database, env, inProcess: true });
    try {
      const body = { tenant, url: URL_OF_NOBODY, events: patternsOf(2_000) };
      const blockedMs = await blockedBy(() => expectStatus(unique.api('POST', '/v1/endpoints', body), 201));
      expect(blockedMs).toBeLessThan(500);
      const same = { ...body, events: [longType(99 * 500 + 499).concat('.b')] };
      await expectStatus(unique.api('POST', '/v1/endpoints', same), 409);
    } finally {
      await unique.stop();
    }
  });
});

describe('400 endpoints with 500 patterns each', () => {
  const tenant = newTenant();
  beforeAll(() => createWithPatterns(tenant, 400, false));

  test('batches of invented types block the process no longer than any batch, and leave nothing in memory', async () => {
    const publishInvented = async (round: number): Promise<void> => {
      const events = Array.from({ length: 1_000 }, (_, n) => ({
        tenant,
        type: `${longType(n)}.i${round}-${n}`,
        data: 0,
      }));
      const { status, body } = await posthorn.api('POST', '/v1/events/batch', { events });
      expect(status).toBe(202);
      expect(body.results[0]).toMatchObject({ deliveries: 1 });
    };
    await publishInvented(0);
    globalThis.gc?.();
    const before = process.memoryUsage().heapUsed;
    const other = newTenant();
    let slowestMs = 0;
    const blockedMs = await blockedBy(async () => {
      for (let round = 1; round <= 10; round += 1) {
        const batch = publishInvented(round);
        const sentAt = performance.now();
        await publish(posthorn, { tenant: other, type: 'a.b', data: 0 });
        slowestMs = Math.max(slowestMs, performance.now() - sentAt);
        await batch;
      }
    });
    expect(blockedMs).toBeLessThan(500);
    expect(slowestMs).toBeLessThan(1_500);
    globalThis.gc?.();
    // 10,000 invented types once took 100 MB. Statistics and garbage that is not collected yet take some.
    expect((process.memoryUsage().heapUsed - before) / 2 ** 20).toBeLessThan(80);
  });
});

test('a tenant has a limit of patterns: what adds more is refused, what exists stays', async () => {
  const env = { POSTHORN_MAX_PATTERNS_PER_TENANT: '1000' };
  const limited = await startTestPosthorn({ database, env, inProcess: true });
  try {
    const tenant = newTenant();
    const create = (from: number, count: number) =>
      limited.api('POST', '/v1/endpoints', {
        tenant,
        url: URL_OF_NOBODY,
        events: Array.from({ length: count }, (_, n) => `type.${from + n}`),
      });
    const first = (await expectStatus(create(0, 400), 201)).body;
    await expectStatus(create(1_000, 500), 201);
    const refused = await expectStatus(create(2_000, 200), 422);
    expect(refused.body).toMatchObject({ code: 'invalid', errors: [{ path: 'events' }] });
    // One pattern for each endpoint is free, so 101 more are left, in one of several requests at once.
    const answers = await Promise.all([1, 2, 3].map((n) => create(3_000 * n, 101)));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 422, 422]);
    await expectStatus(create(9_000, 1), 201);
    const patch = (events: string[]) => limited.api('PATCH', `/v1/endpoints/${first.id}`, { events });
    const own = Array.from({ length: 400 }, (_, n) => `type.${n}`);
    await expectStatus(patch([...own, 'x', 'y', 'z']), 422);
    await expectStatus(patch(own.toReversed()), 200);
    await expectStatus(patch(own.slice(0, 100)), 200);
    await expectStatus(patch(own.slice(0, 300)), 200);
  } finally {
    await limited.stop();
  }
});
