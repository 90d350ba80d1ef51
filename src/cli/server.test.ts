import { execFile, spawn } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { missingProgram, needs } from '../../test/support/needs.ts';
import { type Cli, CliBench, freePort } from './testing/run-cli.ts';

const KEYS = {
  POSTHORN_ADMIN_KEY: 'phk_for-the-tests-only',
  POSTHORN_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64'),
};

let bench: CliBench;
beforeEach(async () => {
  bench = await CliBench.make();
});
afterEach(() => bench.clean());

const noStack = (cli: Cli) => expect(cli.stderr).not.toMatch(/^\s+at /m);

async function startDev(env: Record<string, string> = {}): Promise<Cli> {
  const cli = bench.start(['dev'], env);
  await cli.printed(/post an event:\n\n.*\n.*\n/);
  return cli;
}

describe('posthorn dev', () => {
  it('prints to stdout only where the API and the console are, and the admin key', async () => {
    const cli = await startDev();
    const key = (await readFile(path.join(bench.dataDir, 'admin-key'), 'utf8')).trim();
    expect(cli.stdout).toContain(`Console    http://127.0.0.1:${bench.port}/console\n`);
    expect(cli.stdout).toContain(`Admin key  ${key}\n`);
    expect(cli.stdout).toContain('Development mode: http:// and receivers on this machine are allowed');
    expect(cli.stdout).not.toMatch(/^\{/m);
    expect((await stat(path.join(bench.dataDir, 'encryption-key'))).mode & 0o777).toBe(0o600);
  });

  it('logs its configuration with secrets masked', async () => {
    const cli = await startDev({ ...KEYS, DATABASE_URL: 'postgres://app:s3cret@db/x' });
    await cli.printed(/"configuration"/, 'stderr');
    const config = cli.logged().find((line) => line.msg === 'configuration')?.config;
    expect(config).toMatchObject({
      PORT: String(bench.port),
      DATABASE_URL: 'postgres://app:****@db/x',
      POSTHORN_ADMIN_KEY: '****',
    });
    expect(cli.stderr).not.toMatch(/s3cret|for-the-tests-only/);
  });

  it('warns about a misspelt variable', async () => {
    const cli = await startDev({ POSTHORN_SWEEP_SM: '1s' });
    await cli.printed(/Did you mean/, 'stderr');
    expect(cli.logged()).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        msg: expect.stringContaining('Did you mean POSTHORN_SWEEP_MS?'),
      }),
    );
  });

  it('starts the database and then the app, and stops them in reverse order', async () => {
    const cli = await startDev();
    cli.kill('SIGTERM');
    expect(await cli.ended).toEqual({ code: 0, signal: null });
    expect(await bench.notes()).toEqual([
      'database started',
      'app started on postgres://stand-in/database',
      'app stopping',
      'app stopped',
      'database stopped',
    ]);
  });

  it('uses DATABASE_URL if it is set and starts no database', async () => {
    await startDev({ DATABASE_URL: 'postgres://given/x' });
    expect(await bench.notes()).toEqual(['app started on postgres://given/x']);
  });

  it('prints a receiver that works when pasted into a shell', async () => {
    const cli = await startDev();
    const port = await freePort();
    const line = /^ {4}(node -e .*)$/m.exec(cli.stdout)![1]!.replace('9000', String(port));
    // exec: so that the kill below reaches the receiver itself.
    const receiver = spawn('sh', ['-c', `exec ${line}`], {
      env: { PATH: `${path.dirname(process.execPath)}:${process.env.PATH}` },
    });
    try {
      const printed = new Promise<string>((resolve) =>
        receiver.stdout.once('data', (text) => resolve(String(text))),
      );
      const post = () =>
        fetch(`http://127.0.0.1:${port}/`, {
          method: 'POST',
          body: '{"n":1}',
          headers: { 'webhook-id': 'evt_1' },
        });
      const response = await eventually(post);
      expect(response.status).toBe(200);
      expect(await printed).toBe('evt_1 {"n":1}\n');
    } finally {
      receiver.kill('SIGKILL');
    }
  });

  it('prints two requests that work when pasted into a shell', needs(missingProgram('curl')), async () => {
    const cli = await startDev({ POSTHORN_ADMIN_KEY: "phk_with a 'quote' in it" });
    const [endpoint, event] = [...cli.stdout.matchAll(/^ {4}(curl .*)$/gm)].map((match) => match[1]!);
    const paste = async (line: string) => JSON.parse((await promisify(execFile)('sh', ['-c', line])).stdout);
    const common = {
      method: 'POST',
      authorization: "Bearer phk_with a 'quote' in it",
      type: 'application/json',
    };
    expect(await paste(endpoint!)).toMatchObject({
      ...common,
      url: '/v1/endpoints',
      body: '{"url":"http://127.0.0.1:9000/"}',
    });
    expect(await paste(event!)).toMatchObject({
      ...common,
      url: '/v1/events',
      body: expect.stringContaining('"order.created"'),
    });
  });
});

describe('posthorn dev on its real embedded database', () => {
  it('creates the database, stops it, and finds it again with the same keys', {
    timeout: 60_000,
  }, async () => {
    const first = await startDev({ TEST_REAL_DATABASE: '1' });
    first.kill('SIGINT');
    expect(await first.ended).toEqual({ code: 0, signal: null });

    const second = await startDev({ TEST_REAL_DATABASE: '1' });
    expect(/Admin key .*/.exec(second.stdout)![0]).toBe(/Admin key .*/.exec(first.stdout)![0]);

    const third = await bench.run(['dev', '--port', String(await freePort())], { TEST_REAL_DATABASE: '1' });
    expect(third.code).toBe(1);
    noStack(third);

    second.kill('SIGTERM');
    expect(await second.ended).toEqual({ code: 0, signal: null });
  });
});

describe('stopping', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('%s is graceful and ends with 0', async (signal) => {
    const cli = await startDev({ TEST_STOP_MS: '100' });
    cli.kill(signal);
    expect(await cli.ended).toEqual({ code: 0, signal: null });
    expect(await bench.notes()).toContain('app stopped');
  });

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('a second %s ends it at once with %i', async (signal, code) => {
    const cli = await startDev({ TEST_STOP_MS: '60000' });
    cli.kill(signal);
    await cli.printed(/"stopping"/, 'stderr');
    // A second key press comes later than the repeated signal of the first (see the next test).
    await new Promise((resolve) => setTimeout(resolve, 400));
    cli.kill(signal);
    expect(await cli.ended).toEqual({ code, signal: null });
    expect(await bench.notes()).not.toContain('app stopped');
  });

  it('counts two signals of one key press, as npm sends them, as one', async () => {
    const cli = await startDev({ TEST_STOP_MS: '200' });
    cli.kill('SIGINT');
    await cli.printed(/"stopping"/, 'stderr');
    cli.kill('SIGINT');
    expect(await cli.ended).toEqual({ code: 0, signal: null });
  });

  it('a signal during the start ends it as soon as possible', async () => {
    const cli = bench.start(['dev'], { TEST_START_MS: '500' });
    await cli.printed(/"configuration"/, 'stderr');
    cli.kill('SIGTERM');
    expect(await cli.ended).toEqual({ code: 0, signal: null });
    expect((await bench.notes()).at(-1)).toBe('database stopped');
  });

  it('exits with 1 if the deadline passes, and still stops the database', async () => {
    const cli = await startDev({ TEST_STOP_MS: '60000', POSTHORN_DRAIN_MS: '0' });
    cli.kill('SIGTERM');
    expect(await cli.ended).toEqual({ code: 1, signal: null });
    expect(cli.logged()).toContainEqual(
      expect.objectContaining({ part: 'app', msg: 'did not stop in time' }),
    );
    expect((await bench.notes()).at(-1)).toBe('database stopped');
  });

  it.each([
    ['/throw', 'thrown on request', 'uncaughtException'],
    ['/reject', 'rejected on request', 'unhandledRejection'],
  ])('an unexpected error (%s) is logged and ends it with 1', async (url, message, origin) => {
    const cli = await startDev();
    await fetch(`http://127.0.0.1:${bench.port}${url}`).catch(() => {});
    expect(await cli.ended).toEqual({ code: 1, signal: null });
    expect(cli.logged()).toContainEqual(
      expect.objectContaining({ level: 'fatal', origin, err: expect.objectContaining({ message }) }),
    );
  });
});

describe('errors at the start', () => {
  it('a port in use', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(bench.port, '127.0.0.1', resolve));
    try {
      const cli = await bench.run(['dev']);
      expect(cli.code).toBe(1);
      expect(cli.stderr).toContain(`Port ${bench.port} is in use`);
      expect(cli.stderr).toContain('choose another port with --port or PORT');
      noStack(cli);
      expect((await bench.notes()).at(-1)).toBe('database stopped');
    } finally {
      await new Promise((resolve) => other.close(resolve));
    }
  });

  it('an address that this machine does not have', async () => {
    const cli = await bench.run(['dev'], { HOST: '192.0.2.1' });
    expect(cli.code).toBe(1);
    expect(cli.stderr).toContain('This machine has no address 192.0.2.1');
    noStack(cli);
  });

  it('all invalid settings are reported at once', async () => {
    const cli = await bench.run(['dev', '--port', 'x'], { POSTHORN_SWEEP_MS: 'soon' });
    expect(cli.code).toBe(1);
    expect(cli.stderr).toContain('(2 problems)');
    noStack(cli);
  });

  it('serve without keys', async () => {
    const cli = await bench.run(['serve']);
    expect(cli.code).toBe(1);
    expect(cli.stderr).toContain('POSTHORN_ADMIN_KEY is not set');
    expect(cli.stderr).toContain('POSTHORN_ENCRYPTION_KEY is not set');
    noStack(cli);
    expect(await bench.notes()).toEqual([]);
  });

  it('an unexpected error is printed with its stack', async () => {
    const cli = await bench.run(['dev'], { TEST_START_ERROR: 'something new' });
    expect(cli.code).toBe(1);
    expect(cli.stderr).toMatch(/Error: something new\n\s+at /);
    expect((await bench.notes()).at(-1)).toBe('database stopped');
  });
});

describe('posthorn serve', () => {
  it('prints one line to stdout, with the URL of the console', async () => {
    const cli = bench.start(['serve'], { ...KEYS, DATABASE_URL: 'postgres://given/x' });
    await cli.printed(/\n/);
    expect(cli.stdout).toMatch(new RegExp(`^Posthorn .*console http://127.0.0.1:${bench.port}/console\n$`));
    cli.kill('SIGTERM');
    expect(await cli.ended).toEqual({ code: 0, signal: null });
  });

  it('says that it is a worker, which has no console', async () => {
    const cli = bench.start(['serve', '--role', 'worker'], { ...KEYS, DATABASE_URL: 'postgres://given/x' });
    await cli.printed(/^Posthorn \S+ is running as a worker\.\n$/);
  });

  it('warns when it has to use an embedded database', async () => {
    const cli = bench.start(['serve'], KEYS);
    await cli.printed(/DATABASE_URL is not set.*\n/, 'stderr');
    expect(cli.logged()).toContainEqual(
      expect.objectContaining({ level: 'warn', msg: expect.stringContaining('DATABASE_URL is not set') }),
    );
  });
});

async function eventually<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (tries === 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
