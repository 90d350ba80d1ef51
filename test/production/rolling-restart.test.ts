/** Two nodes are restarted in turn behind a load balancer that follows `/readyz`: no request of a producer fails. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Balancer, startBalancer } from '../support/balancer.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { missingProgram, needs } from '../support/needs.ts';
import { ADMIN_KEY, startTestPosthorn, type TestPosthorn } from '../support/posthorn.ts';
import { CONNECTIONS, type Publisher, type PublishResult, publishWithUndici } from '../support/publisher.ts';

const CLIENTS = fileURLToPath(new URL('./clients', import.meta.url));

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
      return JSON.parse(output) as PublishResult;
    },
  };
}

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
  ): Promise<PublishResult> {
    const ports = [await freePort(), await freePort()];
    const start = (port: number): Promise<TestPosthorn> =>
      startTestPosthorn({ database, args, env: { PORT: String(port), POSTHORN_LAME_DUCK_MS: '1500ms' } });
    const nodes = await Promise.all(ports.map(start));
    const balancer = await startBalancer(ports);
    const publisher = publishTo(balancer);
    let result: PublishResult | undefined;
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

  function expectNoFailures({ sent, failures }: PublishResult): void {
    expect(failures).toEqual([]);
    expect(sent).toBeGreaterThan(50);
  }

  test('causes no failed request of Node clients', async () => {
    expectNoFailures(await restartInTurn((balancer) => publishWithUndici(balancer)));
  });

  test('causes no failed request of Node clients, with several processes per node', async () => {
    expectNoFailures(await restartInTurn((balancer) => publishWithUndici(balancer), ['--processes', '2']));
  });

  test('causes no failed request of Python clients', needs(missingProgram('python3')), async () => {
    const file = path.join(CLIENTS, 'publish.py');
    expectNoFailures(await restartInTurn((balancer) => publishWithProgram('python3', [file], balancer)));
  });

  test('causes no failed request of Go clients', needs(missingProgram('go')), async () => {
    const program = path.join(directory, 'publish');
    execFileSync('go', ['build', '-o', program, path.join(CLIENTS, 'publish.go')], {
      env: { ...process.env, GOFLAGS: '-mod=mod', GO111MODULE: 'off' },
    });
    expectNoFailures(await restartInTurn((balancer) => publishWithProgram(program, [], balancer)));
  });
});
