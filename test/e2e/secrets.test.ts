/** SIG-5, SEC-1: secrets at rest, the rotation of the encryption key, and that no output ever shows a secret. */
import { randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import {
  ADMIN_KEY,
  type Answer,
  createEndpoint,
  expectStatus,
  MAIN,
  newReceiver,
  publish,
  startTestPosthorn,
  TEST_SETTINGS,
  type TestEndpoint,
  type TestPosthorn,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import { startProcess } from '../support/processes.ts';
import { exchange } from '../support/raw-http.ts';

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

  test('from A to B while a server runs; afterwards B is sufficient and A is not', async () => {
    const receiver = await newReceiver();
    const secretOf = new Map<string, string>();
    const create = async (posthorn: TestPosthorn, tenant: string) => {
      const credentials = { headers: { 'x-token': tenant }, auth: { type: 'bearer', token: tenant } };
      const once = { headers: { 'idempotency-key': tenant } };
      return (await createEndpoint(posthorn, { url: receiver.url, tenant, ...credentials }, once)).secret;
    };
    /** An event of each tenant arrives, signed with the secret that its endpoint was given. */
    const expectDeliveries = async (posthorn: TestPosthorn, ...tenants: string[]) => {
      for (const tenant of tenants) {
        const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
        await untilDeliveries(posthorn, event.id, 'delivered');
        const { body, headers } = receiver.requests.at(-1)!;
        new Webhook(secretOf.get(tenant)!).verify(body, headers);
        expect(headers).toMatchObject({ authorization: `Bearer ${tenant}`, 'x-token': tenant });
      }
    };

    const withA = await start(keys(A));
    secretOf.set('one', await create(withA, 'one'));
    secretOf.set('two', await create(withA, 'two'));
    const chat = { kind: 'slack', tenant: 'one', url: 'https://chat.test/services/T0/path' };
    const notifier = await expectStatus(withA.api('POST', '/v1/notifiers', chat), 201);
    await expectDeliveries(withA, 'one');
    await withA.stop();
    expect(new Set((await stored()).map(({ key_id }) => key_id)).size).toBe(1);

    // B encrypts, and A can still decrypt: old and new endpoints both work.
    const withBoth = await start(keys(B, A));
    secretOf.set('three', await create(withBoth, 'three'));
    await expectDeliveries(withBoth, 'one', 'two', 'three');
    expect(new Set((await stored()).map(({ key_id }) => key_id)).size).toBe(2);

    // Without A they cannot be read, and nothing is changed.
    const before = await stored();
    for (const env of [keys(B), keys(C), keys(B, C)]) {
      const { ended, output } = await rotate(env);
      expect(ended, output).toBe(1);
      expect(output).toContain('encrypted with a key that is not configured');
      expect(output).toContain('POSTHORN_PREVIOUS_ENCRYPTION_KEYS');
      expect(output).not.toMatch(/^\s+at /m);
      for (const key of [A, B, C]) expect(output).not.toContain(key);
    }
    expect(await stored()).toEqual(before);

    // Two at once do no harm.
    const both = await Promise.all([rotate(keys(B, A)), rotate(keys(B, A))]);
    for (const { ended, output } of both) expect(ended, output).toBe(0);
    expect(both.map(({ output }) => output).join()).toMatch(/Encrypted \d+ secrets with key [0-9a-f]{12}/);
    const after = await stored();
    expect(new Set(after.map(({ key_id }) => key_id)).size).toBe(1);
    const configs = JSON.stringify(await database.query('select config from posthorn.endpoints'));
    expect(new Set(configs.match(/"key_id":"\w+"/g))).toEqual(new Set([`"key_id":"${after[0]!.key_id}"`]));
    expect(after.at(-1)).toEqual(before.at(-1));
    expect(after[0]!.ciphertext).not.toEqual(before[0]!.ciphertext);

    // The server that ran meanwhile still works, and a second rotation has nothing to do.
    await expectDeliveries(withBoth, 'one', 'three');
    await withBoth.stop();
    expect(await rotate(keys(B))).toMatchObject({ ended: 0, output: expect.stringContaining('already') });

    // B alone.
    const withB = await start(keys(B));
    await expectDeliveries(withB, 'one', 'two', 'three');
    expect((await withB.api('GET', `/v1/notifiers/${notifier.body.id}`)).body.url).toBe(chat.url);
    // Stored answers of idempotent requests can be decrypted too.
    for (const tenant of ['one', 'three']) expect(await create(withB, tenant)).toBe(secretOf.get(tenant));
    await withB.stop();

    // A alone: a clear error, and no stack.
    const withOld = await run(['serve'], keys(A));
    expect(withOld.ended).toBe(1);
    expect(withOld.output).toContain('which is not configured');
    expect(withOld.output).toContain('POSTHORN_PREVIOUS_ENCRYPTION_KEYS');
    expect(withOld.output).not.toMatch(/^\s+at /m);
  });

  test('many secrets are encrypted again in batches, with progress', async () => {
    await database.query(`
      insert into posthorn.endpoints (id, tenant, url, version)
      select gen_random_uuid(), 'many', 'https://example.com/', 1 from generate_series(1, 1200)`);
    const { createSecretBox } = await import('../../src/postgres/secret-box.ts');
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
    expect(output).toMatch(/500 of 1200\n1000 of 1200\n1200 of 1200\nEncrypted 1200 secrets/);
    const opened = createSecretBox(Buffer.from(B, 'base64'));
    const after = await database.query<{ endpoint_id: string; key_id: string; ciphertext: Buffer }>(
      `select s.endpoint_id, s.key_id, s.ciphertext from posthorn.endpoint_secrets s
         join posthorn.endpoints e on e.id = s.endpoint_id where e.tenant = 'many'`,
    );
    expect(after).toHaveLength(1200);
    for (const { endpoint_id, key_id, ciphertext } of after)
      expect(opened.open({ keyId: key_id, ciphertext }, endpoint_id)).toBe(`whsec_${endpoint_id}`);
  });

  test('a secret that was tampered with is reported as damaged, exit 1', async () => {
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

describe('headers that are credentials', () => {
  const posthorn = usePosthorn();

  test('are encrypted in the database, redacted in answers, and sent in plain text', async () => {
    const receiver = await newReceiver();
    const tenant = 'headers';
    const headers = { Authorization: 'Bearer hunter2', 'x-acme-token': 'swordfish', 'x-plain': 'visible' };
    const shown = { Authorization: '[redacted]', 'x-acme-token': '[redacted]', 'x-plain': 'visible' };
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant, headers });
    const read = async () => (await posthorn.api('GET', `/v1/endpoints/${id}`)).body.headers;
    const patch = (change: unknown) => posthorn.api('PATCH', `/v1/endpoints/${id}`, { headers: change });
    const sent = async (): Promise<Record<string, string>> => {
      const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
      await untilDeliveries(posthorn, event.id, 'delivered');
      const { authorization, 'x-acme-token': token, 'x-plain': plain } = receiver.requests.at(-1)!.headers;
      return JSON.parse(JSON.stringify({ authorization, token, plain }));
    };
    expect(await read()).toEqual(shown);
    expect(await sent()).toEqual({ authorization: 'Bearer hunter2', token: 'swordfish', plain: 'visible' });

    // What is read can be sent back, and changes nothing.
    const [before] = await posthorn.database.query(
      'select config from posthorn.endpoints where id is not null',
    );
    await expectStatus(patch(await read()), 200);
    expect(await posthorn.database.query('select config from posthorn.endpoints')).toEqual([before]);
    expect(JSON.stringify(before)).not.toMatch(/hunter2|swordfish|visible/);

    await expectStatus(patch({ 'x-acme-token': 'sesame', 'x-plain': null }), 200);
    expect(await sent()).toEqual({ authorization: 'Bearer hunter2', token: 'sesame' });
    await expectStatus(patch({ Authorization: null }), 200);
    expect(await read()).toEqual({ 'x-acme-token': '[redacted]' });
    expect(await sent()).toEqual({ token: 'sesame' });
    await expectStatus(patch(null), 200);
    expect(await read()).toEqual({});
    expect(await sent()).toEqual({});
  });

  test('are changed and removed by case-insensitive names', async () => {
    const receiver = await newReceiver();
    const tenant = 'cases';
    const headers = { Authorization: 'Bearer OLD', 'X-Plain': 'old' };
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant, headers });
    const patch = async (change: unknown) =>
      (await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { headers: change }), 200)).body
        .headers;
    const sent = async () => {
      const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
      await untilDeliveries(posthorn, event.id, 'delivered');
      return receiver.requests.at(-1)!.headers;
    };
    expect(await patch({ AUTHORIZATION: '[redacted]', 'x-plain': 'new' })).toEqual({
      Authorization: '[redacted]',
      'x-plain': 'new',
    });
    expect(await sent()).toMatchObject({ authorization: 'Bearer OLD', 'x-plain': 'new' });
    expect(await patch({ authorization: 'Bearer NEW', 'X-PLAIN': null })).toEqual({
      authorization: '[redacted]',
    });
    expect(await sent()).toMatchObject({ authorization: 'Bearer NEW' });
    expect(await patch({ Authorization: null })).toEqual({});
    expect(await sent()).not.toHaveProperty('authorization');
  });

  test.each([
    ['POST', '/v1/endpoints', { url: 'https://example.com/' }],
    ['POST', '/v1/events', { type: 'a.b', data: 1 }],
  ])('%s %s: two names that differ only in case are refused', async (method, path, rest) => {
    const headers = { 'X-Token': 'a', 'x-token': 'b' };
    const { body } = await expectStatus(posthorn.api(method, path, { ...rest, headers }), 422);
    expect(body.errors).toMatchObject([
      { path: 'headers.x-token', message: expect.stringMatching(/"X-Token".*only in case/) },
    ]);
  });

  test('a redacted value without a stored secret is refused', async () => {
    const url = 'https://example.com/';
    const headers = { authorization: '[redacted]' };
    const { body } = await expectStatus(posthorn.api('POST', '/v1/endpoints', { url, headers }), 422);
    expect(body.errors).toMatchObject([{ path: 'headers.authorization' }]);
  });
});

describe('no secret in any output', () => {
  test('is found after a whole session: log, answers, problems, database', async () => {
    const database = await createTestDatabase();
    const receiver = await newReceiver();
    const encryptionKey = newKey();
    const previousKey = newKey();
    const databaseUrl = database.url;
    const password = decodeURIComponent(/\/\/[^:]+:([^@]+)@/.exec(databaseUrl)![1]!);
    // All secrets that must not appear anywhere, with their kinds.
    const secrets = new Map<string, string>([
      ['admin key', ADMIN_KEY],
      ['password of the database', password],
      ['wrong password of the database', 'wrong-password-8571'],
      ['encryption key', encryptionKey],
      ['previous encryption key', previousKey],
      ['static authorization', 'Bearer static-9b1f04'],
      ['static token', 'token-7c22aa'],
      ['password', 'pass-3e8d51'],
      ['password as it is sent', Buffer.from('posthorn:pass-3e8d51').toString('base64')],
      ['authorization of an attacker', 'phk_guess-5d0e11'],
    ]);
    const env = {
      DATABASE_URL: databaseUrl,
      POSTHORN_LOG_LEVEL: 'trace',
      POSTHORN_LOG_FORMAT: 'json',
      POSTHORN_ENCRYPTION_KEY: encryptionKey,
      POSTHORN_PREVIOUS_ENCRYPTION_KEYS: previousKey,
    };
    const posthorn = await startTestPosthorn({ database, env });
    const answers: string[] = [];
    /** Sends a request whose answer must not contain a secret, and records the answer. */
    const ask = async (...call: Parameters<TestPosthorn['api']>): Promise<Answer> => {
      const answer = await posthorn.api(...call);
      answers.push(`${JSON.stringify(answer.headers)} ${answer.text}`);
      return answer;
    };
    const output: string[] = [];
    try {
      // Endpoints of every kind, and keys. These answers are the only ones that may show a secret.
      const tenant = 'acme';
      const made: TestEndpoint[] = [];
      for (const signature of ['standard', 'standard-ed25519', 'hex', 'stripe', 'github']) {
        const headers = { Authorization: 'Bearer static-9b1f04', 'X-Acme-Token': 'token-7c22aa' };
        const auth = { type: 'basic', username: 'posthorn', password: 'pass-3e8d51' };
        const credentials = signature === 'hex' ? { auth } : { headers };
        made.push(await createEndpoint(posthorn, { url: receiver.url, tenant, signature, ...credentials }));
      }
      const keys: { id: string; key: string }[] = [];
      for (const scope of ['admin', 'tenant', 'read']) {
        const key = { scope, ...(scope !== 'admin' && { tenant }) };
        keys.push((await expectStatus(posthorn.api('POST', '/v1/keys', key), 201)).body);
      }
      const rotated = (await posthorn.api('POST', `/v1/endpoints/${made[0]!.id}/rotate-secret`, {})).body
        .secret;
      for (const { id, secret } of made) {
        // Null: a private key, which is shown only to those who ask for it.
        const { body } = await posthorn.api('GET', `/v1/endpoints/${id}/secret`);
        secrets.set(`secret of ${id}`, secret ?? body.secret);
      }
      for (const { id, key } of keys) secrets.set(`key ${id}`, key);
      secrets.set('rotated secret', rotated);

      // Deliveries that succeed, that are retried, and that die.
      receiver.answer(({ index }) => ({ status: [200, 503, 400][index % 3]! }));
      const event = await publish(posthorn, { tenant, type: 'a.b', data: { n: 1 } }, { key: keys[1]!.key });
      await receiver.waitFor(5);
      await ask('POST', `/v1/endpoints/${made[0]!.id}/test`, {});
      await receiver.waitFor(6);

      // Read everything that can be read.
      const delivery = await eventually('an attempt of each is written down', async () => {
        const { data } = (await ask('GET', `/v1/deliveries?event_id=${event.id}`)).body;
        return data.every(({ attempts }: { attempts: number }) => attempts > 0) && data[0];
      });
      for (const path of [
        '/v1/endpoints',
        `/v1/endpoints/${made[0]!.id}`,
        `/v1/endpoints/${made[0]!.id}/stats`,
        `/v1/endpoints/${made[0]!.id}/deliveries`,
        '/v1/keys',
        '/v1/events',
        `/v1/events/${event.id}`,
        `/v1/events/${event.id}/attempts`,
        `/v1/events/${event.id}/deliveries`,
        '/v1/deliveries',
        `/v1/deliveries/${delivery.id}`,
        `/v1/deliveries/${delivery.id}/attempts`,
        `/v1/deliveries/${delivery.id}/attempts/1/request`,
        '/v1/dead-letters',
        '/v1/tasks',
        '/healthz',
        '/readyz',
      ])
        expect((await ask('GET', path)).status, path).toBe(200);
      await ask('PATCH', `/v1/endpoints/${made[0]!.id}`, { description: 'changed' });

      // Mistakes, with secrets in all the wrong places.
      const [key, secret] = [keys[1]!.key, made[0]!.secret];
      for (const wrong of [secret, key, ADMIN_KEY]) {
        const inUrl = encodeURIComponent(wrong);
        await ask('GET', `/v1/endpoints/${inUrl}`);
        await ask('GET', `/v1/endpoints?tenant=${inUrl}`);
        await ask('GET', `/v1/endpoints?cursor=${inUrl}`);
        await ask('GET', `/v1/endpoints?${inUrl}=1`);
        await ask('GET', `/${inUrl}?key=${inUrl}`);
        await ask('DELETE', `/v1/keys/${inUrl}`);
        await ask(wrong.startsWith('phk_') ? 'GET' : 'PUT', '/v1/nowhere', undefined, { key: wrong });
        await ask('POST', '/v1/endpoints', `{"url":"https://example.com/","secret":"${wrong}`);
        await ask('POST', '/v1/endpoints', `{"${wrong}":1}`);
        await ask('POST', '/v1/endpoints', wrong);
        await ask('POST', '/v1/endpoints', { url: wrong });
        await ask('POST', '/v1/endpoints', { url: `https://user:${inUrl}@example.com/` });
        await ask('POST', '/v1/endpoints', { url: 'https://example.com/', secret: `${wrong}!` });
        await ask('POST', '/v1/endpoints', { url: 'https://example.com/', tenant: `${wrong}!` });
        await ask('POST', '/v1/endpoints', {
          url: 'https://example.com/',
          headers: { [wrong]: wrong, host: wrong },
        });
        await ask('POST', '/v1/keys', { scope: wrong });
        await ask('POST', '/v1/events', `{"type":"a.b","data":${wrong}}`);
        await ask('POST', '/v1/events', { type: `${wrong}!`, data: 1 });
        await ask('POST', '/v1/events', { type: 'a.b', data: 1, [wrong]: 1 });
        await ask('POST', '/v1/events', 'x', { headers: { 'content-type': wrong } });
      }
      await ask('GET', '/v1/endpoints', undefined, { key: 'phk_guess-5d0e11' });
      await ask('GET', '/v1/endpoints', undefined, { key: null, headers: { authorization: `Basic ${key}` } });
      const broken = await exchange(
        posthorn.url,
        `GET / HTTP/1.1\r\nauthorization: Bearer ${key}\r\nbad header\r\n\r\n`,
      );
      answers.push(JSON.stringify(broken.answers));
      await ask('DELETE', `/v1/keys/${keys[1]!.id}`);
      await ask('GET', '/v1/endpoints', undefined, { key });

      // Statements that fail: the error that is logged knows the statement and its values.
      await database.query('alter table posthorn.endpoint_secrets rename to gone');
      await ask('POST', '/v1/endpoints', { url: receiver.url, tenant, secret });
      await ask('POST', `/v1/endpoints/${made[1]!.id}/rotate-secret`, {});
      await database.query('alter table posthorn.gone rename to endpoint_secrets');
      await database.query('alter table posthorn.api_keys rename to gone');
      await ask('POST', '/v1/keys', { scope: 'read', description: key });
      await ask('GET', '/v1/endpoints', undefined, { key: 'phk_guess-5d0e11-again' });
      await database.query('alter table posthorn.gone rename to api_keys');
    } finally {
      await posthorn.kill('SIGTERM');
      output.push(posthorn.output());
    }

    // Starts that fail: each with secrets in the settings that are wrong, or beside them.
    for (const bad of [
      { POSTHORN_ENCRYPTION_KEY: `${encryptionKey}x` },
      { POSTHORN_PREVIOUS_ENCRYPTION_KEYS: `${previousKey},${encryptionKey}?` },
      { POSTHORN_ADMIN_KEY: 'short', PORT: 'nonsense' },
      { POSTHORN_ENCRYPTION_KEY: newKey(), POSTHORN_PREVIOUS_ENCRYPTION_KEYS: '' },
      { DATABASE_URL: databaseUrl.replace(`:${password}@`, ':wrong-password-8571@') },
      { DATABASE_URL: databaseUrl.replace('postgres', 'mysql') },
      { DATABASE_URL: databaseUrl.replace(/\/test_\w+/, '/no_such_database') },
      { DATABASE_URL: `postgres://posthorn:${password}@127.0.0.1:1/x` },
    ]) {
      const { ended, output: written } = await run(['serve', '--no-wait'], { ...env, ...bad });
      expect(ended, written).toBe(1);
      output.push(written);
    }

    expect(output[0]!.split('\n').length, 'the log says something').toBeGreaterThan(30);
    expect(answers.length).toBeGreaterThan(80);
    const places = {
      'what was written': output.join('\n'),
      'an answer': answers.join('\n'),
      'the database': await dump(database),
    };
    await database.drop();
    expect(places['the database']).toContain('acme');
    const found = [...secrets].flatMap(([what, secret]) =>
      Object.entries(places).flatMap(([place, text]) =>
        formsOf(secret).some((form) => text.includes(form)) ? [`${what} in ${place}`] : [],
      ),
    );
    expect(found).toEqual([]);
    expect(places['the database']).not.toMatch(/whsec_|whsk_/);
  });
});

/** Returns all rows of all tables as text, with byte columns decoded. */
async function dump(database: TestDatabase): Promise<string> {
  const tables = await database.query<{ name: string }>(
    "select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = 'posthorn'",
  );
  const rows: string[] = [];
  for (const { name } of tables) {
    for (const { row } of await database.query<{ row: string }>(`select t::text as row from ${name} t`))
      rows.push(
        row,
        ...(row.match(/\\\\x[0-9a-f]+/g) ?? []).map((hex) =>
          Buffer.from(hex.slice(3), 'hex').toString('latin1'),
        ),
      );
  }
  return rows.join('\n');
}

/** Returns the secret without its prefix, plain and URL-encoded. */
function formsOf(secret: string): string[] {
  const bare = secret.replace(/^(phk|whsec|whsk)_|^Bearer /, '');
  return [bare, encodeURIComponent(bare)];
}
