/** Two nodes are restarted in turn behind a load balancer that follows `/readyz`: no request of a producer fails. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Balancer, startBalancer } from '../support/balancer.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY, freePort, startTestPosthorn, type TestPosthorn } from '../support/posthorn.ts';

const CLIENTS = fileURLToPath(new URL('./clients', import.meta.url));
const CONNECTIONS = 20;

interface Result {
  readonly sent: number;
  readonly failures: readonly string[];
}

interface Publisher {
  stop(): Promise<Result>;
}

/** Publishes with undici, one request at a time per connection. */
function publishWithUndici({ url }: Balancer): Publisher {
  const agent = new Agent({ connections: CONNECTIONS, pipelining: 1 });
  let stopping = false;
  let sent = 0;
  const failures: string[] = [];
  const publish = async (): Promise<void> => {
    while (!stopping) {
      try {
        const { statusCode, body } = await request(`${url}/v1/events`, {
          dispatcher: agent,
          method: 'POST',
          headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
          body: JSON.stringify({ type: 'a.undici', tenant: 'a', data: {} }),
        });
        await body.text();
        if (statusCode === 202) sent += 1;
        else failures.push(String(statusCode));
      } catch (error) {
        failures.push(String(error));
      }
    }
  };
  const publishing = Promise.all(Array.from({ length: CONNECTIONS }, publish));
  return {
    async stop() {
      stopping = true;
      await publishing;
      await agent.close();
      return { sent, failures };
    },
  };
}

function publishWithProgram(file: string, args: readonly string[], { port }: Balancer): Publisher {
  const child: ChildProcess = spawn(
    file,
    [...args, '127.0.0.1', String(port), ADMIN_KEY, String(CONNECTIONS)],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  let output = '';
  child.stdout!.on('data', (chunk) => {
    output += chunk;
  });
  const ended = once(child, 'close');
  return {
    async stop() {
      child.stdin!.end();
      await ended;
      return JSON.parse(output) as Result;
    },
  };
}

const hasPython = spawnSync('python3', ['--version']).status === 0;
const hasGo = spawnSync('go', ['version']).status === 0;

describe('a rolling restart', () => {
  let database: TestDatabase;
  let directory: string;
  beforeAll(async () => {
    database = await createTestDatabase();
    directory = await mkdtemp(path.join(tmpdir(), 'posthorn-test-'));
  });
  afterAll(async () => {
    await database?.drop();
    await rm(directory, { recursive: true, force: true });
  });

  async function restartInTurn(
    publishTo: (balancer: Balancer) => Publisher,
    args: readonly string[] = [],
  ): Promise<Result> {
    const ports = [await freePort(), await freePort()];
    const start = (port: number): Promise<TestPosthorn> =>
      startTestPosthorn({ database, args, env: { PORT: String(port), POSTHORN_LAME_DUCK_MS: '1500ms' } });
    const nodes = await Promise.all(ports.map(start));
    const balancer = await startBalancer(ports);
    const publisher = publishTo(balancer);
    let result: Result | undefined;
    try {
      for (const [index, port] of ports.entries()) {
        await eventually('both are ready', () => balancer.ready.length === 2);
        await nodes[index]!.stop();
        nodes[index] = await start(port);
      }
    } finally {
      result = await publisher.stop();
      await balancer.close();
      await Promise.all(nodes.map((node) => node.stop()));
    }
    return result;
  }

  function expectNoFailures({ sent, failures }: Result): void {
    expect(failures).toEqual([]);
    expect(sent).toBeGreaterThan(50);
  }

  test('causes no failed request of Node clients', async () => {
    expectNoFailures(await restartInTurn(publishWithUndici));
  });

  test('causes no failed request of Node clients, with several processes per node', async () => {
    expectNoFailures(await restartInTurn(publishWithUndici, ['--processes', '2']));
  });

  test.skipIf(!hasPython)(
    'causes no failed request of Python clients (skipped without python3)',
    async () => {
      const file = path.join(CLIENTS, 'publish.py');
      expectNoFailures(await restartInTurn((balancer) => publishWithProgram('python3', [file], balancer)));
    },
  );

  test.skipIf(!hasGo)('causes no failed request of Go clients (skipped without go)', async () => {
    const program = path.join(directory, 'publish');
    execFileSync('go', ['build', '-o', program, path.join(CLIENTS, 'publish.go')], {
      env: { ...process.env, GOFLAGS: '-mod=mod', GO111MODULE: 'off' },
    });
    expectNoFailures(await restartInTurn((balancer) => publishWithProgram(program, [], balancer)));
  });
});
