/** `posthorn doctor`, the real program: on a healthy server, and with common problems. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { newDevHome } from '../support/dev.ts';
import { createEndpoint, MAIN, TEST_SETTINGS, usePosthorn } from '../support/posthorn.ts';
import { startProcess } from '../support/processes.ts';

const posthorn = usePosthorn();

interface Shown {
  readonly exitCode: number | string;
  /** By check. */
  readonly states: Readonly<Record<string, string>>;
  readonly text: string;
}

async function doctor(
  env: Readonly<Record<string, string>>,
  args: readonly string[] = ['--json'],
): Promise<Shown> {
  const child = startProcess([MAIN, 'doctor', ...args], { env });
  const exitCode = await child.ended;
  const text = child.output();
  const checks: { check: string; state: string }[] = args.includes('--json') ? JSON.parse(text).checks : [];
  return { exitCode, text, states: Object.fromEntries(checks.map(({ check, state }) => [check, state])) };
}

const settings = (databaseUrl: string) => ({ ...TEST_SETTINGS, DATABASE_URL: databaseUrl });

test('doctor finds no problem on a healthy server', async () => {
  await createEndpoint(posthorn, { url: 'http://127.0.0.1:1/', tenant: 'a' });
  const { exitCode, states, text } = await doctor({
    ...settings(posthorn.database.url),
    POSTHORN_RELAY_FROM: posthorn.database.url,
  });
  expect(exitCode, text).toBe(0);
  // The tests allow loopback, so the guard warns. Whether names resolve depends on the machine.
  const { 'Egress guard': guard, DNS: _names, ...others } = states;
  expect(guard).toBe('warning');
  expect(others).toEqual({
    Configuration: 'ok',
    Keys: 'ok',
    Database: 'ok',
    Durability: 'ok',
    Standby: 'ok',
    Autovacuum: 'ok',
    Connections: 'ok',
    Clock: 'ok',
    Pooler: 'ok',
    Session: 'ok',
    Grants: 'ok',
    Schema: 'ok',
    Partitions: 'ok',
    Regions: 'ok',
    Shards: 'ok',
    Archive: 'ok',
    Storage: 'ok',
    Secrets: 'ok',
    'Relay source': 'ok',
  });
  expect(text).toContain('all 256 owned, by one worker');
  expect(text).not.toContain(new URL(posthorn.database.url).password);
});

test('doctor reports a wrong encryption key, an unreachable proxy and a misspelt setting at once', async () => {
  await createEndpoint(posthorn, { url: 'http://127.0.0.1:1/', tenant: 'a' });
  const { exitCode, text } = await doctor(
    {
      ...settings(posthorn.database.url),
      POSTHORN_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString('base64'),
      POSTHORN_EGRESS_PROXY: 'http://127.0.0.1:1',
      POSTHORN_SWEP_MS: '1s',
    },
    [],
  );
  expect(exitCode).toBe(1);
  expect(text).toMatch(/^! Configuration +POSTHORN_SWEP_MS is not a setting/m);
  expect(text).toMatch(/^✗ Secrets +Of \d+, some cannot be decrypted/m);
  expect(text).toMatch(/^✗ Egress proxy +127\.0\.0\.1:1 cannot be reached \(ECONNREFUSED\)/m);
  expect(text).toMatch(/^ +→ Start the proxy, or correct POSTHORN_EGRESS_PROXY\.$/m);
  expect(text).toMatch(/\n2 problems, \d warnings?\.\n$/);
});

test('doctor reports an unreachable database and missing keys', async () => {
  const { exitCode, states, text } = await doctor({ DATABASE_URL: 'postgres://me:secret@127.0.0.1:1/x' });
  expect(exitCode).toBe(1);
  expect(states).toMatchObject({ Keys: 'problem', Database: 'problem' });
  expect(text).toContain('ECONNREFUSED');
  expect(text).not.toContain('secret');
});

test('doctor reports an empty database, missing partitions and invalid settings', async () => {
  const [empty, broken] = await Promise.all([createTestDatabase({ empty: true }), createTestDatabase()]);
  onTestFinished(async () => {
    await Promise.all([empty.drop(), broken.drop()]);
  });
  await broken.query("delete from posthorn.partitions where parent = 'events'");
  const [fresh, holes, misread] = await Promise.all([
    doctor(settings(empty.url)),
    doctor(settings(broken.url)),
    doctor({ ...settings(empty.url), POSTHORN_DRAIN_MS: 'soon' }),
  ]);
  expect(fresh).toMatchObject({ exitCode: 0, states: { Schema: 'warning' } });
  expect(holes).toMatchObject({ exitCode: 1, states: { Partitions: 'problem', Shards: 'warning' } });
  expect(misread).toMatchObject({ exitCode: 1, states: { Configuration: 'problem' } });
  expect(misread.text).toContain('POSTHORN_DRAIN_MS');
});

test('doctor reports a pooler that does not forward notifications', async () => {
  const pooler = await startDeafPooler(posthorn.database.url);
  onTestFinished(() => pooler.close());
  const { exitCode, states } = await doctor(settings(pooler.url));
  expect(states).toMatchObject({ Database: 'ok', Session: 'problem' });
  expect(exitCode).toBe(1);
});

test('doctor checks dev before its first start, while it runs and while it is stopped', async () => {
  const home = await newDevHome();
  const env = { POSTHORN_DATA_DIR: home.dataDir };
  const before = await doctor(env, []);
  expect(before.exitCode, before.text).toBe(0);
  expect(before.text).toContain('none yet: `posthorn dev` creates an embedded one');
  const dev = await home.start();
  await createEndpoint(dev, { url: 'http://127.0.0.1:1/', tenant: 'default' });
  const running = await doctor(env);
  expect(running.states, running.text).toMatchObject({ Keys: 'ok', Disk: 'ok', Shards: 'ok', Secrets: 'ok' });
  await dev.stop();
  const stopped = await doctor(env);
  expect(stopped.exitCode, stopped.text).toBe(0);
  expect(stopped.states).toMatchObject({ Database: 'ok', Schema: 'ok', Shards: 'ok', Secrets: 'ok' });
  expect(await home.postgresPid()).toBeUndefined();
});

/** A proxy that forwards everything except notifications, as PgBouncer does in transaction mode. */
async function startDeafPooler(databaseUrl: string) {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(`${decodeURIComponent(hostname)}/.s.PGSQL.${port || '5432'}`);
    for (const socket of [client, upstream]) sockets.add(socket.on('error', () => {}));
    client.pipe(upstream);
    let rest = Buffer.alloc(0);
    upstream.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      // A message is a letter and a length that counts itself.
      while (rest.length >= 5 && rest.length > rest.readInt32BE(1)) {
        const message = rest.subarray(0, 1 + rest.readInt32BE(1));
        rest = rest.subarray(message.length);
        if (message[0] !== 'A'.charCodeAt(0)) client.write(message);
      }
    });
    upstream.on('close', () => client.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `postgresql://${username}:${password}@127.0.0.1:${(server.address() as AddressInfo).port}${pathname}?sslmode=disable`,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
