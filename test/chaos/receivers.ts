import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export type Behaviour = 'ok' | 'fail' | 'slow' | 'reset' | 'hang';
export const badBehaviours: readonly Behaviour[] = ['fail', 'slow', 'reset', 'hang'];

/** One request as the receiver saw it. Times are from the wall clock of this machine, as everywhere in the run. */
export interface Arrival {
  readonly endpoint: string;
  /** `webhook-id`: the event, or the batch. */
  readonly event: string;
  /** The events of a batch, in order. Null: it is no batch. */
  readonly events: readonly string[] | null;
  /** The events of a batch that the answer named as failed. */
  readonly failed: readonly string[];
  readonly attempt: number;
  readonly at: number;
  /** When it was answered or its connection closed. Null: still open. */
  endedAt: number | null;
  /** The status of the answer. Null: no answer. */
  status: number | null;
  /** How many requests this endpoint had open then, this one included. */
  readonly open: number;
}

export type ReceiverCommand =
  | { kind: 'behaviours'; behaviours: Record<string, Behaviour> }
  | { kind: 'arrivals' };
export type ReceiverReply =
  | { kind: 'listening'; port: number }
  | { kind: 'arrivals'; arrivals: readonly Arrival[] };

export interface Receivers {
  urlOf(endpoint: string): string;
  setBehaviours(behaviours: Record<string, Behaviour>): void;
  arrivals(): Promise<readonly Arrival[]>;
  stop(): Promise<void>;
}

export async function startReceivers(): Promise<Receivers> {
  const child = fork(fileURLToPath(new URL('./receiver.ts', import.meta.url)), {
    serialization: 'advanced',
    execArgv: [],
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  void exited.then(() => process.off('exit', kill));
  const { port } = await waitForReply(child, 'listening');
  const send = (command: ReceiverCommand): void => void child.send(command);
  return {
    urlOf: (endpoint) => `http://127.0.0.1:${port}/${endpoint}`,
    setBehaviours: (behaviours) => send({ kind: 'behaviours', behaviours }),
    async arrivals() {
      send({ kind: 'arrivals' });
      return (await waitForReply(child, 'arrivals')).arrivals;
    },
    async stop() {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}

function waitForReply<K extends ReceiverReply['kind']>(
  child: ChildProcess,
  kind: K,
): Promise<Extract<ReceiverReply, { kind: K }>> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null): void => reject(new Error(`The receivers ended (${code}).`));
    const onMessage = (reply: ReceiverReply): void => {
      if (reply.kind !== kind) return;
      child.off('message', onMessage);
      child.off('exit', onExit);
      resolve(reply as Extract<ReceiverReply, { kind: K }>);
    };
    child.on('message', onMessage);
    child.once('exit', onExit);
  });
}
