/**
 * The walk-through of docs/scale-out.md: three Kafka brokers, PostgreSQL and two nodes on this machine. Publishes events all the
 * time, ends one of them after another and starts it again, and accounts for every event that got 202. Brokers and nodes are ended
 * by `kill -9`, PostgreSQL is shut down.
 *
 *   scripts/fetch-kafka.sh && npm run walk-through:kafka
 *
 * Needs Java and the jars of Kafka (test/support/kafka/README.md). Takes two to five minutes; gives up after ten.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startEmbeddedPostgres } from '../src/postgres/embedded/index.ts';
import { freePort } from '../test/support/free-port.ts';
import { missingKafka, TestBroker } from '../test/support/kafka/broker.ts';

const GIVE_UP_MS = 600_000;
const PUBLISHERS = 8;
const EVENTS_BETWEEN_FAULTS = 1_000;
const PROGRAM = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));
const ADMIN_KEY = `phk_${randomBytes(24).toString('base64url')}`;
const ENCRYPTION_KEY = randomBytes(32).toString('base64');

const missing = missingKafka();
if (missing !== null) {
  console.error(`This needs Kafka: ${missing}.`);
  process.exit(2);
}

const startedAt = Date.now();
const say = (text: string): void =>
  console.log(`${((Date.now() - startedAt) / 1000).toFixed(0).padStart(4)} s  ${text}`);

class Node {
  readonly name: string;
  readonly url: string;
  readonly #env: Record<string, string>;
  #child: ChildProcess | null = null;

  constructor(name: string, port: number, env: Record<string, string>) {
    this.name = name;
    this.url = `http://127.0.0.1:${port}`;
    this.#env = { ...env, PORT: String(port) };
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [PROGRAM, 'serve'], {
      env: { PATH: process.env.PATH ?? '', ...this.#env },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    this.#child = child;
    await until(`${this.name} is ready`, async () => (await fetch(`${this.url}/readyz`)).status === 200);
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }

  async call(method: string, route: string, body: unknown): Promise<Response> {
    return fetch(this.url + route, {
      method,
      headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(30_000),
    });
  }
}

async function until(what: string, isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue().catch(() => false))) {
    if (Date.now() - startedAt > GIVE_UP_MS) throw new Error(`gave up waiting: ${what}`);
    await pause(100);
  }
}

/** Counts the deliveries of each event. */
async function startReceiver() {
  const delivered = new Map<string, number>();
  const server = createServer((request, response) => {
    const id = String(request.headers['webhook-id']);
    request.resume().once('end', () => {
      delivered.set(id, (delivered.get(id) ?? 0) + 1);
      response.end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    delivered,
    close: () => server.closeAllConnections() ?? server.close(),
  };
}

/** Publishes to the nodes in turn until it is stopped. */
class Publishers {
  readonly accepted = new Set<string>();
  refused = 0;
  unanswered = 0;
  #isStopped = false;
  readonly #nodes: readonly Node[];
  readonly #running: Promise<void>[];

  constructor(nodes: readonly Node[]) {
    this.#nodes = nodes;
    this.#running = Array.from({ length: PUBLISHERS }, (_, n) => this.#run(n));
  }

  async more(events: number): Promise<void> {
    const goal = this.accepted.size + events;
    await until(`${events} more events are accepted`, async () => this.accepted.size >= goal);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#running);
  }

  async #run(publisher: number): Promise<void> {
    for (let n = publisher; !this.#isStopped; n += 1) {
      const event = { type: 'walk.through', tenant: `tenant-${publisher}`, data: { n } };
      try {
        const answer = await this.#nodes[n % this.#nodes.length]!.call('POST', '/v1/events', event);
        if (answer.status === 202) this.accepted.add(((await answer.json()) as { id: string }).id);
        else if (answer.status === 503) this.refused += 1;
        else throw new Error(`${answer.status}: ${await answer.text()}`);
      } catch (error) {
        if (error instanceof Error && /^\d+:/.test(error.message)) throw error;
        this.unanswered += 1;
        await pause(50);
      }
      await pause(10);
    }
  }
}

const folder = await mkdtemp(path.join(tmpdir(), 'posthorn-walk-through-'));
const dataDir = path.join(folder, 'data');
let postgres = await startEmbeddedPostgres({ dataDir });
say('PostgreSQL runs');
const brokers = await TestBroker.startCluster(3);
say('three Kafka brokers run');
const receiver = await startReceiver();
const env = {
  DATABASE_URL: postgres.connectionString,
  POSTHORN_ADMIN_KEY: ADMIN_KEY,
  POSTHORN_ENCRYPTION_KEY: ENCRYPTION_KEY,
  POSTHORN_EGRESS_ALLOW: '127.0.0.0/8',
  POSTHORN_EGRESS_HTTPS: 'except-loopback',
  POSTHORN_LOG_LEVEL: 'silent',
  POSTHORN_LAME_DUCK_MS: '0',
  POSTHORN_BACKBONE: 'kafka',
  POSTHORN_KAFKA_BROKERS: brokers.map(({ address }) => address).join(),
};
const nodes = [new Node('node 1', await freePort(), env), new Node('node 2', await freePort(), env)];
let lost = Number.NaN;
try {
  for (const node of nodes) await node.start();
  say('two nodes run');
  for (let n = 0; n < PUBLISHERS; n += 1) {
    const endpoint = { tenant: `tenant-${n}`, url: receiver.url, events: ['*'] };
    const answer = await nodes[0]!.call('POST', '/v1/endpoints', endpoint);
    if (answer.status !== 201) throw new Error(await answer.text());
  }
  const publishers = new Publishers(nodes);
  const faults: (readonly [string, () => Promise<void>, () => Promise<void>])[] = [
    ...brokers.map((broker, n) => [`broker ${n + 1}`, () => broker.kill(), () => broker.run()] as const),
    ...nodes.map((node) => [node.name, () => node.end('SIGKILL'), () => node.start()] as const),
    [
      'PostgreSQL',
      () => postgres.stop(),
      async () => {
        postgres = await startEmbeddedPostgres({ dataDir });
      },
    ],
  ];
  for (const [name, kill, restart] of faults) {
    await publishers.more(EVENTS_BETWEEN_FAULTS);
    say(`${publishers.accepted.size} events accepted; ${name} ends`);
    await kill();
    await publishers.more(EVENTS_BETWEEN_FAULTS);
    await restart();
    say(`${publishers.accepted.size} events accepted; ${name} is back`);
  }
  await publishers.more(EVENTS_BETWEEN_FAULTS);
  await publishers.stop();
  const { accepted, refused, unanswered } = publishers;
  say(`published: ${accepted.size} got 202, ${refused} got 503, ${unanswered} got no answer`);
  const findLost = (): string[] => [...accepted].filter((id) => !receiver.delivered.has(id));
  const giveUpAt = Date.now() + 120_000;
  while (findLost().length > 0 && Date.now() < giveUpAt) await pause(200);
  lost = findLost().length;
  const repeated = [...receiver.delivered.values()].filter((count) => count > 1).length;
  say(`delivered: ${receiver.delivered.size} events, ${repeated} of them more than once`);
  say(`${lost} lost`);
} finally {
  for (const node of nodes) await node.end('SIGKILL');
  for (const broker of brokers) await broker.remove();
  await postgres.stop();
  receiver.close();
  await rm(folder, { recursive: true, force: true });
}
process.exitCode = lost === 0 ? 0 : 1;
