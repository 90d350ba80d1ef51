import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../test/support/eventually.ts';
import { systemClock } from '../domain/clock.ts';
import type { EventContent } from '../domain/event.ts';
import { newId } from '../domain/ids.ts';
import { NO_LOAD } from '../domain/load-meter.ts';
import type { CommittedDelivery } from '../ports/hand-over.ts';
import { PeerLinks } from './peer-links.ts';
import { SiblingSockets } from './sibling-sockets.ts';

const COMMIT = { sentAt: 1_700_000_000_123, endpointVersion: 7 };

async function someDirectory(): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), 'posthorn-siblings-test-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

async function start(directory: string, number: number, shards: number[], own = { load: NO_LOAD }) {
  const time = { ahead: 0 };
  const received: CommittedDelivery[] = [];
  const problems: string[] = [];
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + time.ahead };
  const onProblem = (what: string) => problems.push(what);
  const siblings = new PeerLinks({
    id: newId(1_800_000_000_000),
    transports: [new SiblingSockets({ directory, number, clock, onProblem })],
    bus: null,
    clock,
    onProblem,
  });
  siblings.onReceived((deliveries, commit) => {
    expect(commit).toEqual(COMMIT);
    received.push(...deliveries);
  });
  onTestFinished(() => siblings.stop());
  await siblings.start(() => shards, own);
  return { siblings, received, problems, shards, time };
}

const event = (bytes: number): EventContent => ({
  id: '01890000-0000-7000-8000-000000000000',
  tenant: 'acme',
  type: 'a.b',
  data: Buffer.alloc(bytes, 'x'),
  idempotencyKey: null,
  schemaVersion: null,
  headers: null,
});
const deliveryOf = (shard: number) => ({
  id: '01890000-0000-7000-8000-000000000001',
  endpointId: `01890000-0000-7000-8000-0000000000${shard.toString(16).padStart(2, '0')}`,
  dueAt: null,
  fifo: false,
});

test('hands each process the deliveries of its shards, as shards change hands', async () => {
  const directory = await someDirectory();
  const first = await start(directory, 1, [1]);
  const second = await start(directory, 2, [2]);
  const third = await start(directory, 3, []);
  const small = event(10);
  await eventually('third knows first', () => third.siblings.offer(1, deliveryOf(1), small, COMMIT));
  await eventually('first knows second', () => first.siblings.offer(2, deliveryOf(2), small, COMMIT));
  await eventually('all arrived', () => first.received.length === 1 && second.received.length === 1);
  expect(first.received).toEqual([{ delivery: deliveryOf(1), event: small }]);
  expect(first.siblings.offer(1, deliveryOf(1), small, COMMIT)).toBeNull();
  expect(first.siblings.offer(3, deliveryOf(3), small, COMMIT)).toBeNull();

  second.shards.pop();
  second.siblings.announceShards();
  third.shards.push(2);
  third.siblings.announceShards();
  await eventually('third owns the shard', () => {
    first.siblings.offer(2, deliveryOf(2), small, COMMIT);
    return third.received.length > 0;
  });

  await third.siblings.stop();
  await eventually(
    'a process that stopped gets nothing more',
    () => !first.siblings.offer(2, deliveryOf(2), small, COMMIT),
  );
});

test('hands nothing over to a silent process: it may have lost its shards', async () => {
  const directory = await someDirectory();
  const first = await start(directory, 1, [7]);
  const second = await start(directory, 2, []);
  const third = await start(directory, 3, []);
  const small = event(10);
  await eventually('second knows first', () => second.siblings.offer(7, deliveryOf(7), small, COMMIT));
  second.time.ahead += 3_000;
  expect(second.siblings.offer(7, deliveryOf(7), small, COMMIT)).toBeNull();
  await eventually('first has announced its shards again', () =>
    second.siblings.offer(7, deliveryOf(7), small, COMMIT),
  );

  await eventually('both deliveries have arrived', () => first.received.length === 2);
  third.shards.push(7);
  third.siblings.announceShards();
  await eventually('the latest announcement wins', () => {
    second.siblings.offer(7, deliveryOf(7), small, COMMIT);
    return third.received.length > 0;
  });
});

test('knows the load of a process that delivers, also while its lease has expired, until it is silent', async () => {
  const directory = await someDirectory();
  const accepting = await start(directory, 1, []);
  const own = { load: { loopDelayMs: 300, commitMs: 0 } };
  const delivering = await start(directory, 2, [7], own);
  const isKnown = (loopDelayMs: number) => () => accepting.siblings.siblingLoad.loopDelayMs === loopDelayMs;
  await eventually('the load is known', isKnown(300));
  // A process announces no shards while its lease is not valid.
  delivering.shards.pop();
  own.load = { loopDelayMs: 400, commitMs: 0 };
  await eventually('the load is announced without shards', isKnown(400));
  own.load = { loopDelayMs: 500, commitMs: 0 };
  await eventually('and again', isKnown(500));
  accepting.time.ahead += 3_000;
  expect(accepting.siblings.siblingLoad).toEqual(NO_LOAD);
});

test('buffers at most a few megabytes for a process that does not read', async () => {
  const directory = await someDirectory();
  const first = await start(directory, 1, []);
  const stuck = net.connect(path.join(directory, '1.sock'));
  onTestFinished(() => void stuck.destroy());
  const owns = Buffer.from('{"owns":[7]}');
  const frame = Buffer.alloc(8 + owns.length);
  frame.writeUInt32BE(4 + owns.length, 0);
  frame.writeUInt32BE(owns.length, 4);
  owns.copy(frame, 8);
  stuck.write(frame);
  const large = event(100_000);
  await eventually('first knows its shards', () => first.siblings.offer(7, deliveryOf(7), large, COMMIT));
  let offered = 0;
  while (first.siblings.offer(7, deliveryOf(7), large, COMMIT) && offered < 1000) {
    offered += 1;
    await Promise.resolve();
  }
  expect(offered * large.data.length).toBeGreaterThan(3_000_000);
  expect(offered).toBeLessThan(100);
});

test('reports that its socket cannot be created, and hands nothing over', async () => {
  const directory = path.join(await someDirectory(), 'x'.repeat(120));
  const alone = await start(directory, 1, [1]);
  expect(alone.problems).toEqual(['listen for sibling processes']);
  expect(alone.siblings.offer(2, deliveryOf(2), event(1), COMMIT)).toBeNull();
});

test('closes a connection that sends invalid bytes, and removes the socket file of a dead process', async () => {
  const directory = await someDirectory();
  await writeFile(path.join(directory, 'notes.txt'), '');
  await leaveSocketFile(path.join(directory, '0.sock'));

  const first = await start(directory, 1, [1]);
  await eventually('the socket file is removed', async () => !(await readdir(directory)).includes('0.sock'));
  const stranger = net.connect(path.join(directory, '1.sock'));
  const ended = new Promise((resolve) => stranger.once('close', resolve));
  stranger.on('error', () => {}).end('these bytes are not a frame');
  stranger.resume();
  await ended;
  await eventually('the invalid bytes were reported', () => first.problems.length === 1);
  expect(first.problems).toEqual(['read a message of another process']);
  const second = await start(directory, 2, []);
  await eventually('other processes are not affected', () =>
    second.siblings.offer(1, deliveryOf(1), event(1), COMMIT),
  );
});

/** Leaves a socket file behind without a process that listens, like a process that was killed. */
async function leaveSocketFile(name: string): Promise<void> {
  const script = `require('node:net').createServer().listen(${JSON.stringify(name)}, () => process.kill(process.pid, 'SIGKILL'))`;
  await new Promise<void>((resolve) => execFile(process.execPath, ['-e', script], () => resolve()));
}
