import net from 'node:net';
import tls from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../test/support/eventually.ts';
import { systemClock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';
import { MemoryPeerDirectory } from '../memory/memory-peer-directory.ts';
import type { PeerAddress } from '../ports/peer-directory.ts';
import { NodeLinks } from './node-links.ts';

const KEY = Buffer.alloc(32, 1);

/** The address that the process announces is in `directory`. */
async function start(
  directory: MemoryPeerDirectory,
  {
    keys = new Map([['one', KEY]]),
    node = newId(Date.now()),
  }: { keys?: Map<string, Buffer>; node?: string } = {},
) {
  const sockets: net.Socket[] = [];
  const problems: string[] = [];
  const links = new NodeLinks({
    id: newId(Date.now()),
    node,
    host: '127.0.0.1',
    listenHost: '127.0.0.1',
    port: 0,
    keys,
    directory,
    clock: { ...systemClock, after: (delayMs, task) => systemClock.after(Math.min(delayMs, 20), task) },
    onProblem: (what, error) => problems.push(`${what}: ${(error as NodeJS.ErrnoException).code}`),
  });
  onTestFinished(async () => {
    await links.stop();
    for (const socket of sockets) socket.destroy();
  });
  await links.start((socket) => {
    socket.on('error', () => {});
    sockets.push(socket);
  });
  return { links, sockets, problems };
}

const addressesIn = (directory: MemoryPeerDirectory): Promise<readonly PeerAddress[]> =>
  directory.announce({ id: newId(0), node: 'test', host: '', port: 0, wireVersion: 1 });

async function startAndFind(directory: MemoryPeerDirectory) {
  const node = await start(directory);
  const [address] = await eventually('it has announced its address', async () => {
    const found = (await addressesIn(directory)).filter(({ port }) => port > 0);
    return found.length > 0 && found;
  });
  return { ...node, port: address!.port };
}

test('two nodes share one connection, and a new node joins them', async () => {
  const directory = new MemoryPeerDirectory();
  const nodes = [await start(directory), await start(directory)];
  await eventually('the first two are connected', () => nodes.every(({ sockets }) => sockets.length === 1));
  nodes.push(await start(directory));
  await eventually('all three are connected', () => nodes.every(({ sockets }) => sockets.length === 2));
  nodes[0]!.sockets[0]!.destroy();
  await eventually('a lost connection is opened again', () =>
    nodes.every(({ sockets }) => sockets.filter(({ destroyed }) => !destroyed).length === 2),
  );
});

test('processes of one node do not connect, because they have sockets of their own', async () => {
  const directory = new MemoryPeerDirectory();
  const [one, two] = [await start(directory, { node: 'a' }), await start(directory, { node: 'a' })];
  const other = await start(directory, { node: 'b' });
  await eventually('the other node knows both', () => other.sockets.length === 2);
  expect([one.sockets.length, two.sockets.length]).toEqual([1, 1]);
});

test('SEC-3: a node with another encryption key cannot connect', async () => {
  const directory = new MemoryPeerDirectory();
  const node = await start(directory);
  const stranger = await start(directory, { keys: new Map([['one', Buffer.alloc(32, 2)]]) });
  const unknown = await start(directory, { keys: new Map([['two', KEY]]) });
  await eventually('all have tried', () =>
    [node, stranger, unknown].every(({ problems }) => problems.length > 0),
  );
  expect([node, stranger, unknown].flatMap(({ sockets }) => sockets)).toEqual([]);
});

test('after a change of the key, a node that knows both keys connects with nodes that know either', async () => {
  const directory = new MemoryPeerDirectory();
  const keys = new Map([
    ['new', Buffer.alloc(32, 2)],
    ['one', KEY],
  ]);
  // The node with the highest id connects, with its own current key.
  const old = await start(directory);
  const both = await start(directory, { keys });
  const later = await start(directory);
  await eventually('the later node is connected', () => later.sockets.length === 2);
  expect(both.sockets.length).toBeGreaterThan(0);
  expect(old.sockets.length).toBeGreaterThan(0);
});

test('SEC-3: strangers who send bytes, speak TLS without the key or say nothing reach nobody', async () => {
  const { port, sockets, problems } = await startAndFind(new MemoryPeerDirectory());
  const garbage = net.connect(port, '127.0.0.1').on('error', () => {});
  garbage.end('{"owns":[1,2,3]}');
  const withCertificates = tls
    .connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
    .on('error', () => {});
  const silent = net.connect(port, '127.0.0.1').on('error', () => {});
  onTestFinished(() => {
    for (const socket of [garbage, withCertificates, silent]) socket.destroy();
  });
  await eventually('two were refused', () => problems.length >= 2);
  expect(sockets).toEqual([]);
});
