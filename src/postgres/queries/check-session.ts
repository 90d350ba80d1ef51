import { randomBytes } from 'node:crypto';
import type { Client } from '../database.ts';

export interface SessionFacts {
  /** The server process stays the same from statement to statement, and a lock taken by one is held by the next. */
  readonly isOneSession: boolean;
  /** What is notified arrives. */
  readonly hears: boolean;
}

const PATIENCE_MS = 2_000;

/**
 * A connection that a pooler shares out by transaction is none: locks and LISTEN belong to whoever gets the server
 * process next, and ownership rests on both.
 */
export async function checkSession(client: Client): Promise<SessionFacts> {
  const channel = `posthorn_doctor_${randomBytes(8).toString('hex')}`;
  const lock = randomBytes(6).readUIntBE(0, 6);
  const pids = new Set<number>();
  const notePid = async (): Promise<void> => {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    pids.add(rows[0]!.pid);
  };
  await notePid();
  await client.query('select pg_advisory_lock($1)', [lock]);
  const heard = new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => resolve(false), PATIENCE_MS);
    client.on('notification', (message) => {
      if (message.channel !== channel) return;
      clearTimeout(timer);
      resolve(true);
    });
  });
  await client.query(`listen ${channel}`);
  await notePid();
  await client.query('select pg_notify($1, $2)', [channel, '']);
  const hears = await heard;
  await notePid();
  const { rows } = await client.query<{ held: boolean }>('select pg_advisory_unlock($1) as held', [lock]);
  await client.query(`unlisten ${channel}`);
  return { isOneSession: pids.size === 1 && rows[0]!.held, hears };
}
