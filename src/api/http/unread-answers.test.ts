import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { limitUnreadAnswers } from './unread-answers.ts';

const BODY = Buffer.alloc(16 * 1024 * 1024);
const REQUEST = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';

/** A server on virtual time. `pass` lets this much time pass, in steps of a second. */
async function startServer(answer: (response: ServerResponse) => void, maxBytes = 1024 ** 3) {
  let now = 0;
  const timers = new Set<() => void>();
  let closed = 0;
  const server = createServer((_, response) => answer(response));
  limitUnreadAnswers(server, {
    clock: {
      now: () => now,
      monotonic: () => now,
      after(_, task) {
        timers.add(task);
        return () => timers.delete(task);
      },
    },
    timeoutMs: 30_000,
    maxBytes,
    onClosed: (count) => {
      closed += count;
    },
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const open = async (): Promise<Socket> => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('error', () => {});
    onTestFinished(() => void socket.destroy());
    await once(socket, 'connect');
    return socket;
  };
  const pass = (ms: number): void => {
    for (const end = now + ms; now < end; ) {
      now += 1000;
      const due = [...timers];
      timers.clear();
      for (const task of due) task();
    }
  };
  return { open, pass, closed: () => closed };
}

const answered = () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { promise, resolve };
};

test('closes the connection of a client that never reads, later if the answer is large', async () => {
  const done = answered();
  const { open, pass, closed } = await startServer((response) => {
    response.end(BODY);
    setImmediate(done.resolve);
  });
  const socket = await open();
  socket.pause();
  socket.write(REQUEST);
  await done.promise;
  pass(60_000);
  expect(closed()).toBe(0);
  // 16 MiB at 64 KiB per second.
  pass(260_000);
  expect(closed()).toBe(1);
});

test('leaves connections alone whose clients read, or that are idle', async () => {
  const done = answered();
  const { open, pass, closed } = await startServer((response) => {
    response.end(BODY);
    response.once('finish', done.resolve);
  });
  const [reader] = [await open(), await open()];
  reader.resume();
  reader.write(REQUEST);
  await done.promise;
  pass(600_000);
  expect(closed()).toBe(0);
});

test('an answer that goes on as the client reads may take as long as it likes', async () => {
  let response: ServerResponse | undefined;
  const { open, pass, closed } = await startServer((each) => {
    response = each;
    each.write('first');
  });
  const socket = await open();
  socket.resume();
  socket.write(REQUEST);
  await expect.poll(() => response).toBeDefined();
  for (let n = 0; n < 100; n += 1) {
    await new Promise<void>((resolve) => response!.write('x'.repeat(1000), () => resolve()));
    response!.write('y');
    pass(10_000);
  }
  expect(closed()).toBe(0);
});

test('closes the largest if all together take too much memory', async () => {
  let answers = 0;
  const { open, pass, closed } = await startServer(
    (response) => {
      response.end(BODY);
      setImmediate(() => (answers += 1));
    },
    40 * 1024 * 1024,
  );
  for (let n = 0; n < 6; n += 1) {
    const socket = await open();
    socket.pause();
    socket.write(REQUEST);
  }
  await expect.poll(() => answers).toBe(6);
  pass(1_000);
  // They may be on their way.
  expect(closed()).toBe(0);
  pass(2_000);
  // The system's buffers hold a part of each.
  expect(closed()).toBeGreaterThanOrEqual(3);
  expect(closed()).toBeLessThan(6);
});
