import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { rolesOfChildren } from './child-roles.ts';
import { backoffAfter, restartDelayMs } from './restart-pace.ts';
import { childOptions } from './supervisor.ts';
import { type Cli, CliBench } from './testing/run-cli.ts';

const ENV = {
  POSTHORN_ADMIN_KEY: 'phk_for-the-tests-only',
  POSTHORN_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64'),
  DATABASE_URL: 'postgres://given/x',
};

let bench: CliBench;
beforeEach(async () => {
  bench = await CliBench.make();
});
afterEach(() => bench.clean());

/** With role api both children answer HTTP, so the tests can ask each for its process id. */
async function startTwo(env: Record<string, string> = {}): Promise<Cli> {
  const cli = bench.start(['serve', '--role', 'api', '--processes', '2'], { ...ENV, ...env });
  await cli.printed(/is running/);
  return cli;
}

async function askPid(path = '/'): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${bench.port}${path}`);
  return ((await response.json()) as { pid: number }).pid;
}

/** Connections are distributed in turn, so a few requests reach every child. */
async function pids(): Promise<number[]> {
  const seen = new Set<number>();
  for (let i = 0; i < 6; i += 1) seen.add(await askPid());
  return [...seen];
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const wait = { timeout: 10_000, interval: 20 };

describe('rolesOfChildren', () => {
  it.each([
    [2, 'api worker'],
    [3, 'api worker worker'],
    [5, 'api worker worker worker worker'],
    [6, 'api api worker worker worker worker'],
  ])('with %i processes, one in three answers the API', (processes, roles) => {
    expect(rolesOfChildren('all', processes).join(' ')).toBe(roles);
  });

  it.each(['api', 'worker'] as const)('with --role %s, all have that role', (role) => {
    expect(rolesOfChildren(role, 3)).toEqual([role, role, role]);
  });
});

describe('serve --processes 3', () => {
  const env = { ...ENV, TEST_NOTE_ROLES: 'yes' };
  const roles = async () => (await bench.notes()).filter((note) => /^\d+ is /.test(note));

  it('one child answers the API and two deliver, also after one was killed', async () => {
    const cli = bench.start(['serve', '--processes', '3'], env);
    await cli.printed(/is running \(role all\)/);
    const before = await roles();
    const delivers = before.filter((note) => note.endsWith('is worker, and does not listen'));
    expect(delivers).toHaveLength(2);
    expect(before.filter((note) => note.endsWith('is api'))).toEqual([`${await askPid()} is api`]);
    process.kill(Number.parseInt(delivers[0]!, 10), 'SIGKILL');
    await vi.waitFor(async () => expect(await roles()).toHaveLength(4), wait);
    expect((await roles()).at(-1)).toMatch(/is worker, and does not listen$/);
    const answering = await askPid();
    process.kill(answering, 'SIGKILL');
    await vi.waitFor(async () => expect(await roles()).toHaveLength(5), wait);
    expect((await roles()).at(-1)).toBe(`${await askPid()} is api`);
  });

  it('on SIGTERM, the child that accepts events stops before those that deliver them', async () => {
    const cli = bench.start(['serve', '--processes', '3'], { ...env, TEST_STOP_MS: '100' });
    await cli.printed(/is running/);
    cli.kill('SIGTERM');
    expect(await cli.ended).toEqual({ code: 0, signal: null });
    const stops = (await bench.notes()).filter((note) => /^(api|worker) (stops|has stopped)$/.test(note));
    expect(stops.slice(0, 2)).toEqual(['api stops', 'api has stopped']);
    expect(stops.slice(2).toSorted()).toEqual([
      'worker has stopped',
      'worker has stopped',
      'worker stops',
      'worker stops',
    ]);
  });

  it('with --role worker all children deliver, and listen for health checks', async () => {
    const cli = bench.start(['serve', '--role', 'worker', '--processes', '3'], env);
    await cli.printed(/is running as a worker/);
    expect((await roles()).map((note) => note.replace(/^\d+ /, ''))).toEqual(Array(3).fill('is worker'));
  });
});

describe('serve --processes 2', () => {
  it('shares the port between two children, and migrates once', async () => {
    const cli = await startTwo();
    const children = await pids();
    expect(children).toHaveLength(2);
    expect(children).not.toContain(cli.pid);
    expect((await bench.notes()).filter((note) => note === 'migrated')).toHaveLength(1);
    expect(cli.stdout.split('\n').filter(Boolean)).toHaveLength(1);
  });

  it('passes its embedded database to the children and stops it last', async () => {
    const cli = await startTwo({ DATABASE_URL: '' });
    cli.kill('SIGTERM');
    expect(await cli.ended).toEqual({ code: 0, signal: null });
    const notes = await bench.notes();
    expect(notes.filter((note) => note === 'database started')).toHaveLength(1);
    expect(notes.filter((note) => note === 'app started on postgres://stand-in/database')).toHaveLength(2);
    expect(notes.filter((note) => note === 'app stopped')).toHaveLength(2);
    expect(notes.at(-1)).toBe('database stopped');
  });

  it('restarts a child that was killed, while the other one keeps running', async () => {
    const cli = await startTwo();
    const [victim, survivor] = await pids();
    process.kill(victim!, 'SIGKILL');
    await cli.printed(/a child process ended, starting another/, 'stderr');
    expect(await askPid()).toBeTypeOf('number');
    await vi.waitFor(async () => {
      const now = await pids();
      expect(now).toHaveLength(2);
      expect(now).toContain(survivor);
      expect(now).not.toContain(victim);
    }, wait);
    expect(cli.logged()).toContainEqual(
      expect.objectContaining({
        msg: 'a child process ended, starting another',
        childPid: victim,
        signal: 'SIGKILL',
      }),
    );
  });

  it('restarts a child that crashed', async () => {
    const cli = await startTwo();
    const before = await pids();
    await askPid('/throw');
    await cli.printed(/"exitCode":1/, 'stderr');
    await vi.waitFor(async () => {
      const now = await pids();
      expect(now).toHaveLength(2);
      expect(now).not.toEqual(before);
    }, wait);
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('%s stops all children gracefully', async (signal) => {
    const cli = await startTwo({ TEST_STOP_MS: '200' });
    const children = await pids();
    cli.kill(signal);
    expect(await cli.ended).toEqual({ code: 0, signal: null });
    expect(children.some(isAlive)).toBe(false);
    expect((await bench.notes()).filter((note) => note === 'app stopped')).toHaveLength(2);
  });

  it('a signal that reaches the children too counts once', async () => {
    const cli = await startTwo({ TEST_STOP_MS: '300' });
    const children = await pids();
    for (const pid of [cli.pid, ...children]) process.kill(pid, 'SIGINT');
    expect(await cli.ended).toEqual({ code: 0, signal: null });
    expect((await bench.notes()).filter((note) => note === 'app stopped')).toHaveLength(2);
  });

  it('a second signal kills the children', async () => {
    const cli = await startTwo({ TEST_STOP_MS: '60000' });
    const children = await pids();
    cli.kill('SIGTERM');
    await vi.waitFor(
      async () => expect((await bench.notes()).filter((note) => note === 'app stopping')).toHaveLength(2),
      wait,
    );
    await new Promise((resolve) => setTimeout(resolve, 400));
    cli.kill('SIGTERM');
    expect(await cli.ended).toEqual({ code: 143, signal: null });
    await vi.waitFor(() => expect(children.some(isAlive)).toBe(false), wait);
  });

  it('children stop by themselves, gracefully, when the parent is killed', async () => {
    const cli = await startTwo();
    const children = await pids();
    cli.kill('SIGKILL');
    await cli.ended;
    await vi.waitFor(() => expect(children.some(isAlive)).toBe(false), wait);
    expect((await bench.notes()).filter((note) => note === 'app stopped')).toHaveLength(2);
  });

  it('if a child cannot start, everything ends with one message', async () => {
    const first = await startTwo();
    const second = await bench.run(['serve', '--role', 'api', '--processes', '2'], ENV);
    expect(second.code).toBe(1);
    expect(second.stderr.match(/is in use/g)).toHaveLength(1);
    expect(second.stderr).not.toMatch(/^\s+at /m);
    expect(first.process.exitCode).toBeNull();
  });
});

describe('the pace of restarts', () => {
  it('is immediate for a child that ran for a while', () => {
    expect(restartDelayMs(60_000, backoffAfter(60_000, 0))).toBe(0);
    expect(restartDelayMs(5000, backoffAfter(5000, 0))).toBe(0);
  });

  it('slows down to 30 s for a child that crashes at its start', () => {
    const delays = [];
    let backoffMs = 0;
    for (let crash = 0; crash < 8; crash += 1) {
      backoffMs = backoffAfter(10, backoffMs);
      delays.push(restartDelayMs(10, backoffMs));
    }
    expect(delays).toEqual([990, 1990, 3990, 7990, 15_990, 29_990, 29_990, 29_990]);
  });

  it('is reset after a child has run for a minute', () => {
    expect(backoffAfter(60_000, 30_000)).toBe(1000);
  });

  it('never allows two starts of one child within a second', () => {
    for (const ranMs of [0, 1, 500, 999, 1000, 5000]) {
      expect(ranMs + restartDelayMs(ranMs, backoffAfter(ranMs, 0))).toBeGreaterThanOrEqual(1000);
    }
  });
});

it('gives children more room for young objects, unless the operator chose the size', () => {
  expect(childOptions(['--enable-source-maps'], '')).toEqual([
    '--enable-source-maps',
    '--max-semi-space-size=32',
  ]);
  expect(childOptions(['--max-semi-space-size=4'], '')).toEqual(['--max-semi-space-size=4']);
  expect(childOptions([], '--inspect --max-semi-space-size=64')).toEqual([]);
});
