/** SIG-5, SEC-1: secrets at rest, the rotation of the key they are sealed with, and that no output ever shows one. */
import { randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import {
  ADMIN_KEY,
  createEndpoint,
  MAIN,
  newReceiver,
  publish,
  startTestPosthorn,
  TEST_SETTINGS,
  type TestPosthorn,
  untilDeliveries,
} from '../support/posthorn.ts';
import { startProcess } from '../support/processes.ts';

const newKey = (): string => randomBytes(32).toString('base64');

/** Runs a command of the real program to its end. */
async function run(
  args: readonly string[],
  env: Record<string, string>,
): Promise<{ ended: unknown; output: string }> {
  const child = startProcess([MAIN, ...args], { env: { ...TEST_SETTINGS, ...env } });
  return { ended: await child.ended, output: child.output() };
}

describe('SIG-5: the encryption key is rotated', () => {
  const [A, B, C] = [newKey(), newKey(), newKey()];
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());

  const keys = (current: string, ...previous: string[]): Record<string, string> => ({
    DATABASE_URL: database.url,
    POSTHORN_ENCRYPTION_KEY: current,
    POSTHORN_PREVIOUS_ENCRYPTION_KEYS: previous.join(','),
  });
  const start = (env: Record<string, string>) => startTestPosthorn({ database, env });
  const rotate = (env: Record<string, string>) => run(['rotate-encryption-key'], env);
  const stored = () =>
    database.query<{ key_id: string; ciphertext: Buffer }>(
      'select key_id, ciphertext from posthorn.endpoint_secrets order by id',
    );

  test('from A to B, while a server runs; then B alone will do, and A alone will not', async () => {
    const receiver = await newReceiver();
    const secretOf = new Map<string, string>();
    const create = async (posthorn: TestPosthorn, tenant: string) => {
      secretOf.set(tenant, (await createEndpoint(posthorn, { url: receiver.url, tenant })).secret);
    };
    /** An event of each tenant arrives, signed with the secret that its endpoint was given. */
    const expectDeliveries = async (posthorn: TestPosthorn, ...tenants: string[]) => {
      for (const tenant of tenants) {
        const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
        await untilDeliveries(posthorn, event.id, 'delivered');
        const { body, headers } = receiver.requests.at(-1)!;
        new Webhook(secretOf.get(tenant)!).verify(body, headers);
      }
    };

    const withA = await start(keys(A));
    await create(withA, 'one');
    await create(withA, 'two');
    await expectDeliveries(withA, 'one');
    await withA.stop();
    expect(new Set((await stored()).map(({ key_id }) => key_id)).size).toBe(1);

    // With B, and A to read with: old and new endpoints both work.
    const withBoth = await start(keys(B, A));
    await create(withBoth, 'three');
    await expectDeliveries(withBoth, 'one', 'two', 'three');
    expect(new Set((await stored()).map(({ key_id }) => key_id)).size).toBe(2);

    // Without A they cannot be read, and nothing is changed.
    const before = await stored();
    for (const env of [keys(B), keys(C), keys(B, C)]) {
      const { ended, output } = await rotate(env);
      expect(ended, output).toBe(1);
      expect(output).toContain('sealed with a key that is not configured');
      expect(output).toContain('POSTHORN_PREVIOUS_ENCRYPTION_KEYS');
      expect(output).not.toMatch(/^\s+at /m);
      for (const key of [A, B, C]) expect(output).not.toContain(key);
    }
    expect(await stored()).toEqual(before);

    // Two at once do no harm.
    const both = await Promise.all([rotate(keys(B, A)), rotate(keys(B, A))]);
    for (const { ended, output } of both) expect(ended, output).toBe(0);
    expect(both.map(({ output }) => output).join()).toMatch(/Sealed \d+ secrets with key [0-9a-f]{12}/);
    const after = await stored();
    expect(new Set(after.map(({ key_id }) => key_id)).size).toBe(1);
    expect(after[2]).toEqual(before[2]);
    expect(after[0]!.ciphertext).not.toEqual(before[0]!.ciphertext);

    // The server that ran meanwhile noticed nothing; and a second rotation has nothing to do.
    await expectDeliveries(withBoth, 'one', 'three');
    await withBoth.stop();
    expect(await rotate(keys(B))).toMatchObject({ ended: 0, output: expect.stringContaining('already') });

    // B alone.
    const withB = await start(keys(B));
    await expectDeliveries(withB, 'one', 'two', 'three');
    await withB.stop();

    // A alone: a clear error, and no stack.
    const withOld = await run(['serve'], keys(A));
    expect(withOld.ended).toBe(1);
    expect(withOld.output).toContain('which is not configured');
    expect(withOld.output).toContain('POSTHORN_PREVIOUS_ENCRYPTION_KEYS');
    expect(withOld.output).not.toMatch(/^\s+at /m);
  });

  test('many secrets go in batches, with progress', async () => {
    await database.query(`
      insert into posthorn.endpoints (id, tenant, url, version)
      select gen_random_uuid(), 'many', 'https://example.com/', 1 from generate_series(1, 1200)`);
    const { createSecretBox } = await import('../../src/store/secret-box.ts');
    const box = createSecretBox(Buffer.from(A, 'base64'));
    const rows = await database.query<{ id: string }>(
      "select id from posthorn.endpoints where tenant = 'many'",
    );
    const sealed = rows.map(({ id }) => box.seal(`whsec_${id}`, id));
    await database.query(
      `insert into posthorn.endpoint_secrets (id, endpoint_id, key_id, ciphertext)
       select gen_random_uuid(), * from unnest($1::uuid[], $2::text[], $3::bytea[])`,
      [
        rows.map(({ id }) => id),
        sealed.map(({ keyId }) => keyId),
        sealed.map(({ ciphertext }) => ciphertext),
      ],
    );
    const { ended, output } = await rotate(keys(B, A));
    expect(ended, output).toBe(0);
    expect(output).toMatch(/500 of 1200\n1000 of 1200\n1200 of 1200\nSealed 1200 secrets/);
    const opened = createSecretBox(Buffer.from(B, 'base64'));
    const after = await database.query<{ endpoint_id: string; key_id: string; ciphertext: Buffer }>(
      `select s.endpoint_id, s.key_id, s.ciphertext from posthorn.endpoint_secrets s
         join posthorn.endpoints e on e.id = s.endpoint_id where e.tenant = 'many'`,
    );
    expect(after).toHaveLength(1200);
    for (const { endpoint_id, key_id, ciphertext } of after)
      expect(opened.open({ keyId: key_id, ciphertext }, endpoint_id)).toBe(`whsec_${endpoint_id}`);
  });

  test('a secret that was tampered with is named as damaged, exit 1', async () => {
    await database.query(`
      update posthorn.endpoint_secrets set ciphertext = set_byte(ciphertext, 30, get_byte(ciphertext, 30) # 1)
       where id = (select id from posthorn.endpoint_secrets limit 1)`);
    const { ended, output } = await rotate(keys(C, B));
    expect(ended).toBe(1);
    expect(output).toContain('is damaged');
    expect(output).not.toMatch(/^\s+at /m);
  });

  test.each([
    ['no database', { DATABASE_URL: '' }, 'DATABASE_URL is not set'],
    ['no key', { POSTHORN_ENCRYPTION_KEY: '' }, 'POSTHORN_ENCRYPTION_KEY is not set'],
    ['a key that is none', { POSTHORN_ENCRYPTION_KEY: 'short' }, 'POSTHORN_ENCRYPTION_KEY'],
    ['no server', { DATABASE_URL: 'postgres://127.0.0.1:1/x' }, 'cannot be reached'],
  ])('%s is a clear error, exit 1', async (_what, env, message) => {
    const { ended, output } = await rotate({ ...keys(A), ...env });
    expect(ended, output).toBe(1);
    expect(output).toContain(message);
    expect(output).not.toContain(ADMIN_KEY);
    expect(output).not.toMatch(/^\s+at /m);
  });
});
