/** OBS-2: the alert about Redis, on a real server whose Redis becomes unavailable. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectAlerts, named, scrape, untilScrape } from '../../support/alerts.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { needs } from '../../support/needs.ts';
import { startTestPosthorn, type TestPosthorn } from '../../support/posthorn.ts';
import { PROMTOOL_MISSING } from '../../support/promtool.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../../support/redis.ts';

describe('OBS-2: Redis', needs(whyNoRedis ?? PROMTOOL_MISSING), () => {
  let database: TestDatabase;
  let redis: TestRedis;
  let posthorn: TestPosthorn;
  beforeAll(async () => {
    [database, redis] = await Promise.all([createTestDatabase(), startRedis()]);
    posthorn = await startTestPosthorn({ database, env: { POSTHORN_REDIS_URL: redis.url } });
  });
  afterAll(async () => {
    await posthorn?.stop();
    await redis?.stop();
    await database?.drop();
  });

  test('that stays away triggers its alert, and one that answers does not', async () => {
    const well = await untilScrape(
      posthorn,
      'it is connected',
      (now) => now.value('posthorn_redis_connections', { state: 'up' }) === 1,
    );
    await expectAlerts([well, await scrape(posthorn)], { silent: [named('PosthornRedisAway')] });
    await redis.crash();
    const ill = await untilScrape(
      posthorn,
      'it is away',
      (now) => now.value('posthorn_redis_connections', { state: 'down' }) === 1,
    );
    await expectAlerts([well, ill], { firing: [named('PosthornRedisAway')] });
    expect(posthorn.output()).toContain('use Redis');
  });
});
