import cluster from 'node:cluster';
import type { StopRequests } from './run-until-stopped.ts';

const SIGNAL_NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
type StopSignal = keyof typeof SIGNAL_NUMBERS;

/**
 * One press of Ctrl-C under `npm start` arrives twice: from the terminal, which sends it to the whole group, and from
 * npm, which passes it on. Only a signal that comes later than this after the first is a second one.
 */
const SAME_PRESS_MS = 300;

/** Of a process on its own: the first signal stops, the second one forces. */
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
 * Of a child of the supervisor: the supervisor decides. It asks by a message, and ends a child that does not listen
 * with SIGKILL. A signal to the whole group reaches parent and children, and must not count twice here.
 * When the supervisor is gone, so is the channel to it, and the child stops by itself. The parent's process id is
 * watched besides: a channel stays open while any other process holds its other end.
 */
export const requestsOfSupervisor: StopRequests = ({ stop }) => {
  // Otherwise node:cluster ends the process at once when the channel closes, with everything in flight.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
  const onMessage = (message: unknown): void => {
    if (message === STOP_MESSAGE) stop('asked by the supervisor');
  };
  const onDisconnect = (): void => stop('the supervisor is gone');
  process.on('message', onMessage);
  process.on('disconnect', onDisconnect);
  const supervisor = supervisorOfChild();
  const watch = setInterval(() => {
    if (process.ppid !== supervisor) onDisconnect();
  }, WATCH_PARENT_MS).unref();
  // It may have ended before this process could listen.
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
