import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkRedis } from '../../../src/cli/doctor/check-redis.ts';
import { needs } from '../../support/needs.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../../support/redis.ts';

const check = (redisUrl: string | null) => checkRedis({ redisUrl, redisPrefix: 'posthorn' });

describe('doctor and Redis', needs(whyNoRedis), () => {
  let redis: TestRedis;
  beforeEach(async () => {
    redis = await startRedis({ password: 'mellon' });
  });
  afterEach(async () => {
    redis.resume();
    await redis.stop();
  });

  test('a Redis that answers is fine, with its version and round trip', async () => {
    expect(await check(null)).toBeNull();
    const found = await check(redis.url);
    expect(found).toMatchObject({ check: 'Redis', state: 'ok', todo: null });
    expect(found!.detail).toMatch(
      /^redis:\/\/:\*\*\*\*@127\.0\.0\.1:\d+: (Redis|Valkey) \d+\.\d+\.\d+, round trip \d+\.\d ms$/,
    );
  });

  test('a wrong password, a missing permission, a server that is away or hangs are warnings without the password', async () => {
    const findings = [await check(redis.url.replace('mellon', 'friend'))];
    await redis.run(
      'ACL',
      'SETUSER',
      'narrow',
      'on',
      '>mellon',
      'allkeys',
      'allchannels',
      '+@all',
      '-publish',
    );
    findings.push(await check(redis.url.replace('//:', '//narrow:')));
    redis.hang();
    findings.push(await check(redis.url));
    redis.resume();
    await redis.crash();
    findings.push(await check(redis.url));
    const reasons = [/WRONGPASS/, /NOPERM/, /does not answer/, /ECONNREFUSED/];
    for (const [index, reason] of reasons.entries()) {
      expect(findings[index]).toMatchObject({ state: 'warning', detail: expect.stringMatching(reason) });
      expect(findings[index]!.todo).toContain('POSTHORN_REDIS_URL');
      expect(JSON.stringify(findings[index])).not.toMatch(/mellon|friend/);
    }
  });

  test('the permissions that the documentation names are enough', async () => {
    const page = await readFile(new URL('../../../docs/scale-out.md', import.meta.url), 'utf8');
    const command = /^ACL SETUSER posthorn .*$/m.exec(page)![0];
    await redis.run(...command.split(' '));
    expect(await check(redis.url.replace('//:mellon', '//posthorn:password'))).toMatchObject({ state: 'ok' });
  });
});
