import { mkdtemp, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../test/support/eventually.ts';
import { systemClock } from '../domain/clock.ts';
import { shardOf } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import { newId, type Uuid } from '../domain/ids.ts';
import { MemoryMessageBus, MemoryMessageHub } from '../memory/memory-message-bus.ts';
import { BusLinks } from './bus-links.ts';
import { PeerLinks, type PeerTransport } from './peer-links.ts';
import { SiblingSockets } from './sibling-sockets.ts';

const NOW = 1_800_000_000_000;
const COMMIT = { sentAt: NOW, endpointVersion: 1 };

/** The last byte of an endpoint's id is its shard. */
const deliveryOf = (shard: number) => ({
  id: newId(NOW),
  endpointId: newId(NOW).slice(0, 34) + shard.toString(16).padStart(2, '0'),
  dueAt: null,
  fifo: false,
});
const eventOf = (bytes: number): EventContent => ({
  id: newId(NOW),
  tenant: 'acme',
  type: 'a.b',
  data: Buffer.alloc(bytes, 1),
  idempotencyKey: null,
  schemaVersion: null,
  headers: null,
});

/** Sockets that a test can break permanently. */
class LosableSockets implements PeerTransport {
  readonly isWithinNode = true;
  readonly #sockets: SiblingSockets;
  readonly #open = new Set<Socket>();

  constructor(siblings: { directory: string; number: number }) {
    this.#sockets = new SiblingSockets({ ...siblings, clock: systemClock, onProblem: () => {} });
  }

  start(onConnected: (socket: Socket) => void): Promise<void> {
    return this.#sockets.start((socket) => {
      this.#open.add(socket);
      onConnected(socket);
    });
  }

  stop(): Promise<void> {
    return this.#sockets.stop();
  }

  async lose(): Promise<void> {
    await this.stop();
    for (const socket of this.#open) socket.destroy();
  }
}

async function start(
  hub: MemoryMessageHub,
  shards: number[],
  siblings: { directory: string; number: number } | null = null,
) {
  const id = newId(NOW);
  const bus = new MemoryMessageBus(id, hub);
  const onProblem = () => {};
  const transports = siblings === null ? [] : [new LosableSockets(siblings)];
  const links = new PeerLinks({ id, transports, bus: new BusLinks(bus), clock: systemClock, onProblem });
  const received: Uuid[] = [];
  const undelivered: Uuid[] = [];
  links.onReceived((deliveries) => received.push(...deliveries.map(({ delivery }) => delivery.id)));
  links.onUndelivered((deliveries) => undelivered.push(...deliveries.map(({ delivery }) => delivery.id)));
  onTestFinished(() => links.stop());
  await links.start(() => shards);
  return {
    links,
    bus,
    received,
    undelivered,
    offer: (delivery: ReturnType<typeof deliveryOf>, bytes = 1) =>
      links.offer(shardOf(delivery.endpointId), delivery, eventOf(bytes), COMMIT),
    /** Its direct connections break, and it makes no new ones. */
    loseConnections: async () => {
      for (const transport of transports) await transport.lose();
    },
    /** The process crashes. */
    die: () => void hub.members.delete(bus),
  };
}

test('the first frame for a dead process reports its deliveries as undelivered', async () => {
  const hub = new MemoryMessageHub();
  const [from, owner] = [await start(hub, []), await start(hub, [5])];
  await eventually('the owner is known', () => from.offer(deliveryOf(5)) === 'redis');
  owner.die();
  const lost = [deliveryOf(5), deliveryOf(5)];
  for (const delivery of lost) expect(from.offer(delivery)).toBe('redis');
  await eventually('they are reported', () => from.undelivered.length === 2);
  expect(from.undelivered).toEqual(lost.map(({ id }) => id));
  expect(from.offer(deliveryOf(5))).toBeNull();
});

test('a payload that is too large for the bus is refused, and large commits are split', async () => {
  const hub = new MemoryMessageHub();
  const [from, owner] = [await start(hub, []), await start(hub, [5])];
  await eventually('the owner is known', () => from.offer(deliveryOf(5)) === 'redis');
  await eventually('the first arrives', () => owner.received.length === 1);
  expect(from.offer(deliveryOf(5), 2 * 1024 * 1024)).toBeNull();
  const sizes: number[] = [];
  const publish = from.bus.publish.bind(from.bus);
  from.bus.publish = (channel, message) => {
    if (channel !== 'shards') sizes.push(message.length);
    return publish(channel, message);
  };
  for (let n = 0; n < 20; n += 1) expect(from.offer(deliveryOf(5), 500_000)).toBe('redis');
  await eventually('all arrive', () => owner.received.length === 21);
  expect(sizes.length).toBeGreaterThan(5);
  expect(Math.max(...sizes)).toBeLessThan(2_200_000);
});

test('a process sends nothing through an unavailable bus, and announces its shards when the bus is back', async () => {
  const hub = new MemoryMessageHub();
  const [from, owner] = [await start(hub, []), await start(hub, [5])];
  await eventually('the owner is known', () => from.offer(deliveryOf(5)) === 'redis');
  hub.isUp = false;
  expect(from.offer(deliveryOf(5))).toBeNull();
  hub.restart();
  const next = deliveryOf(5);
  await eventually('the owner is known', () => from.offer(next) === 'redis');
  await eventually('it arrives', () => owner.received.includes(next.id));
});

test('a process with a direct connection is not used through the bus, until the connection is lost', async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'posthorn-bus-links-test-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const hub = new MemoryMessageHub();
  const from = await start(hub, [], { directory, number: 1 });
  const owner = await start(hub, [5], { directory, number: 2 });
  await eventually('they are connected', () => from.offer(deliveryOf(5)) === 'sibling');
  // Announcements of the same process arrive through the bus and change nothing. This member gets each one right after
  // `from`, before another announcement can arrive through the socket.
  const routes: unknown[] = [];
  const other = new MemoryMessageBus(newId(NOW), hub);
  other.subscribe('shards', () => routes.push(from.offer(deliveryOf(5))));
  await eventually('it was announced on the bus', () => routes.length >= 2);
  expect(new Set(routes)).toEqual(new Set(['sibling']));
  hub.members.delete(other);
  // The socket is gone, and the process still announces itself on the bus.
  await owner.loseConnections();
  const next = deliveryOf(5);
  await eventually('the bus is used', () => from.offer(next) === 'redis');
  await eventually('it arrives', () => owner.received.includes(next.id));
});
