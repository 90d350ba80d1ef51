import cluster from 'node:cluster';
import type { StopRequests } from './run-until-stopped.ts';

const SIGNAL_NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
type StopSignal = keyof typeof SIGNAL_NUMBERS;

/**
 * One press of Ctrl-C under `npm start` arrives twice: from the terminal, which signals the whole group, and from npm,
 * which forwards it. Only a later signal counts as a second one.
 */
const SAME_PRESS_MS = 300;

/** For a process without a supervisor: the first signal stops it, the second one forces it. */
export const signalsOfUser: StopRequests = ({ stop, force }) => {
  let firstAt: number | null = null;
  const onSignal = (signal: StopSignal): void => {
    const now = performance.now();
    if (firstAt === null) {
      firstAt = now;
      stop(signal);
    } else if (now - firstAt > SAME_PRESS_MS) {
      force(128 + SIGNAL_NUMBERS[signal]);
    }
  };
  return listen(onSignal);
};

/**
 * For a child of the supervisor, which decides: it sends a message, and SIGKILL to a child that does not react. A
 * signal to the whole group reaches parent and children, and must not count twice. If the supervisor ends, the channel
 * to it closes and the child stops by itself. The child also watches its parent's process id, because the channel stays
 * open while another process holds its other end.
 */
export const requestsOfSupervisor: StopRequests = ({ stop }) => {
  // Otherwise node:cluster ends the process as soon as the channel closes, with requests in flight.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
  const onMessage = (message: unknown): void => {
    if (message === STOP_MESSAGE) stop('requested by the supervisor');
  };
  const onDisconnect = (): void => stop('the supervisor has ended');
  process.on('message', onMessage);
  process.on('disconnect', onDisconnect);
  const supervisor = supervisorOfChild();
  const watch = setInterval(() => {
    if (process.ppid !== supervisor) onDisconnect();
  }, WATCH_PARENT_MS).unref();
  // The supervisor may have ended before this process could listen.
  if (!process.connected) onDisconnect();
  const unlisten = listen((signal) => {
    if (signal === 'SIGTERM') stop(signal);
  });
  return () => {
    clearInterval(watch);
    process.off('message', onMessage);
    process.off('disconnect', onDisconnect);
    unlisten();
  };
};

const WATCH_PARENT_MS = 500;
/** Set by the supervisor for its children. */
export const SUPERVISOR_VARIABLE = 'POSTHORN_SUPERVISOR_PID';
const supervisorOfChild = (): number => Number(process.env[SUPERVISOR_VARIABLE] ?? process.ppid);

export const STOP_MESSAGE = 'posthorn:stop';

function listen(onSignal: (signal: StopSignal) => void): () => void {
  const signals = Object.keys(SIGNAL_NUMBERS) as StopSignal[];
  for (const signal of signals) process.on(signal, onSignal);
  return () => {
    for (const signal of signals) process.off(signal, onSignal);
  };
}
