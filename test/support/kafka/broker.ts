/** Real Kafka brokers (KRaft). See README.md beside this file. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../free-port.ts';
import { missingProgram } from '../needs.ts';

const here = fileURLToPath(new URL('.', import.meta.url));
const libs = process.env.POSTHORN_TEST_KAFKA_LIBS ?? path.join(here, '../../../node_modules/.cache/kafka');
const CLUSTER_ID = '4L6g3nShT-eMCtK--X86sw';

/** For `needs`: what this machine lacks to run a broker, or null. */
export function missingKafka(): string | null {
  const noJava = missingProgram('java');
  if (noJava !== null) return noJava;
  return existsSync(libs) ? null : 'the jars of Kafka are not there: scripts/fetch-kafka.sh';
}

export interface BrokerOptions {
  readonly protocol?: string;
  readonly settings?: Readonly<Record<string, string>>;
  readonly users?: Readonly<Record<string, string>>;
}

interface NodeOptions {
  readonly id: number;
  readonly port: number;
  readonly controllerPort: number;
  readonly voters: string;
  readonly count: number;
}

const QUICK_FAILOVER = {
  'broker.session.timeout.ms': 4000,
  'broker.heartbeat.interval.ms': 1000,
  'replica.lag.time.max.ms': 4000,
};

export class TestBroker {
  readonly address: string;
  readonly #folder: string;
  readonly #port: number;
  #child: ChildProcess | null = null;

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.#port = port;
    this.address = `127.0.0.1:${port}`;
  }

  /** `protocol` and `settings` are for TLS and SASL. `users`: with their passwords, for SCRAM. */
  static async start(options: BrokerOptions = {}): Promise<TestBroker> {
    return (await TestBroker.startCluster(1, options))[0]!;
  }

  /** Starts brokers that replicate to each other. They notice within a few seconds that one has died. */
  static async startCluster(count: number, options: BrokerOptions = {}): Promise<TestBroker[]> {
    const ports: (readonly [number, number])[] = [];
    for (let n = 0; n < count; n += 1) ports.push([await freePort(), await freePort()]);
    const voters = ports.map(([, controllerPort], n) => `${n + 1}@127.0.0.1:${controllerPort}`).join(',');
    const brokers = await Promise.all(
      ports.map(([port, controllerPort], n) =>
        TestBroker.#create({ id: n + 1, port, controllerPort, voters, count }, options),
      ),
    );
    await Promise.all(brokers.map((broker) => broker.run()));
    return brokers;
  }

  static async #create(
    { id, port, controllerPort, voters, count }: NodeOptions,
    { protocol = 'PLAINTEXT', settings = {}, users = {} }: BrokerOptions,
  ): Promise<TestBroker> {
    const folder = await mkdtemp(path.join(tmpdir(), 'posthorn-kafka-'));
    const properties: Record<string, string | number> = {
      'process.roles': 'broker,controller',
      'node.id': id,
      'controller.quorum.voters': voters,
      listeners: `CLIENTS://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
      'advertised.listeners': `CLIENTS://127.0.0.1:${port}`,
      'listener.security.protocol.map': `CLIENTS:${protocol},CONTROLLER:PLAINTEXT`,
      'inter.broker.listener.name': 'CLIENTS',
      'controller.listener.names': 'CONTROLLER',
      'log.dirs': path.join(folder, 'log'),
      'num.network.threads': 2,
      'num.io.threads': 2,
      'offsets.topic.num.partitions': 1,
      'offsets.topic.replication.factor': 1,
      'transaction.state.log.num.partitions': 1,
      'transaction.state.log.replication.factor': 1,
      'transaction.state.log.min.isr': 1,
      'share.coordinator.state.topic.num.partitions': 1,
      'share.coordinator.state.topic.replication.factor': 1,
      'share.coordinator.state.topic.min.isr': 1,
      'auto.create.topics.enable': 'false',
      'log.retention.check.interval.ms': 1000,
      'log.cleaner.dedupe.buffer.size': 10_485_760,
      ...(count > 1 && QUICK_FAILOVER),
      ...settings,
    };
    await writeFile(
      path.join(folder, 'server.properties'),
      Object.entries(properties)
        .map(([name, value]) => `${name}=${value}`)
        .join('\n'),
    );
    const broker = new TestBroker(folder, port);
    const scram = Object.entries(users).flatMap(([user, password]) => [
      '--add-scram',
      `SCRAM-SHA-512=[name=${user},password=${password}]`,
    ]);
    await broker.#java(
      ...['kafka.tools.StorageTool', 'format', '-t', CLUSTER_ID, '-c', 'server.properties'],
      ...scram,
    );
    return broker;
  }

  /** Starts the broker and resolves when it answers. */
  async run(): Promise<void> {
    const child = this.#spawn('kafka.Kafka', 'server.properties');
    this.#child = child;
    await waitForPort(this.#port, child, () => this.log());
  }

  /** The id of its process. Throws if it does not run. */
  get pid(): number {
    return this.#child!.pid!;
  }

  /** As `kill -9`. */
  kill(): Promise<void> {
    return this.#end('SIGKILL');
  }

  /** SIGTERM: other brokers with copies of its partitions lead them before it ends. */
  stop(): Promise<void> {
    return this.#end('SIGTERM');
  }

  /** SIGSTOP: its connections stay open, and it answers nothing. */
  pause(): void {
    this.#child?.kill('SIGSTOP');
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  async restart(): Promise<void> {
    await this.kill();
    await this.run();
  }

  /** Ends the broker and deletes its data. */
  async remove(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }

  log(): Promise<string> {
    return readFile(path.join(this.#folder, 'out.txt'), 'utf8').catch(() => '');
  }

  async #java(...args: readonly string[]): Promise<void> {
    const [code] = await once(this.#spawn(...args), 'exit');
    if (code !== 0) throw new Error(`java ${args.join(' ')} ended with ${code}:\n${await this.log()}`);
  }

  #spawn(...args: readonly string[]): ChildProcess {
    const options = [
      '-Xmx256m',
      '-XX:+UseSerialGC',
      '-XX:TieredStopAtLevel=1',
      '-Djava.net.preferIPv4Stack=true',
      `-Dlog4j2.configurationFile=${path.join(here, 'log4j2.properties')}`,
    ];
    const command = `exec java ${options.join(' ')} -cp "$KAFKA_LIBS/*" "$@" >> out.txt 2>&1`;
    return spawn('/bin/sh', ['-c', command, 'sh', ...args], {
      cwd: this.#folder,
      env: { PATH: process.env.PATH ?? '', KAFKA_LIBS: path.resolve(libs) },
      stdio: 'ignore',
    });
  }
}

const START_TIMEOUT_MS = 90_000;

async function waitForPort(port: number, child: ChildProcess, log: () => Promise<string>): Promise<void> {
  const until = Date.now() + START_TIMEOUT_MS;
  while (Date.now() < until) {
    if (child.exitCode !== null) throw new Error(`Kafka ended with ${child.exitCode}:\n${await log()}`);
    const socket = connect(port, '127.0.0.1');
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true));
      socket.once('error', () => resolve(false));
    });
    socket.destroy();
    if (isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`Kafka did not start:\n${await log()}`);
}
