/**
 * The child of `serve --processes` that answers probes until the others listen. It shares the port with them through
 * node:cluster, whose parent keeps the socket open while one child follows the other.
 */
import type { Worker } from 'node:cluster';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServerContext } from './server-command.ts';
import { STOP_MESSAGE } from './stop-requests.ts';
import {
  ChildFailedToStart,
  CONFIGURATION_EXIT_CODE,
  forkChild,
  type Program,
  WAITING_ROLE,
} from './supervisor.ts';
import { type Address, listenForProbes, WaitingServer } from './waiting-server.ts';

const CLOSED = 'posthorn:closed';
const MAY_END = 'posthorn:may-end';
/** How long the child waits for a client that has connected and not sent its request yet. */
const LAST_REQUESTS_MS = 1000;
/** A child that has not stopped listening by then is frozen. It is killed, or the API would never get the port. */
const STOP_TIMEOUT_MS = 5_000;

/** Answers probes in a child of its own. */
export function createWaitingChild(address: Address, program: Program): WaitingServer<Worker> {
  return new WaitingServer(address, (_, onLost) => start(program, onLost), stopListening);
}

/** A child that is killed is replaced at the next attempt to reach the database. */
async function start(program: Program, onLost: () => void): Promise<Worker> {
  const worker = forkChild(program, { role: WAITING_ROLE });
  const started = Promise.withResolvers<Worker>();
  // A message to a child that has ended fails. Its exit is handled below.
  worker.on('error', () => {});
  worker.once('listening', () => started.resolve(worker));
  worker.once('exit', (exitCode) => {
    if (exitCode === CONFIGURATION_EXIT_CODE) started.reject(new ChildFailedToStart());
    else started.resolve(worker);
    onLost();
  });
  return started.promise;
}

/** Resolves when the child gets no more connections. It ends when it has answered its last ones. */
async function stopListening(worker: Worker): Promise<void> {
  if (!worker.isConnected()) return;
  const closed = Promise.withResolvers<void>();
  worker.on('message', (message: unknown) => {
    if (message !== CLOSED) return;
    if (worker.isConnected()) worker.send(MAY_END);
    closed.resolve();
  });
  worker.once('exit', () => closed.resolve());
  worker.send(STOP_MESSAGE);
  const timeout = setTimeout(() => worker.process.kill('SIGKILL'), STOP_TIMEOUT_MS);
  await closed.promise;
  clearTimeout(timeout);
}

/** Runs in the child. */
export async function answerProbes({ config, running }: ServerContext): Promise<void> {
  const server = await listenForProbes(config);
  running.push({ name: 'answers to probes', stop: () => finish(server) });
}

/**
 * The parent may have sent connections that the child has not seen yet. They arrive before its answer to CLOSED, and the
 * child gives them back. A child that ended without them would leave their clients without an answer.
 */
async function finish(server: Server): Promise<void> {
  const closed = once(server, 'close');
  // The parent learns this before CLOSED, and sends the child no more connections.
  server.close();
  await askToEnd();
  await Promise.race([closed, sleep(LAST_REQUESTS_MS, undefined, { ref: false })]);
  server.closeAllConnections();
}

function askToEnd(): Promise<void> {
  return new Promise((resolve) => {
    process.on('message', (message: unknown) => {
      if (message === MAY_END) resolve();
    });
    process.once('disconnect', () => resolve());
    if (process.connected) process.send?.(CLOSED, undefined, {}, () => {});
    else resolve();
  });
}
