import { randomBytes } from 'node:crypto';
import type { Client } from '../database.ts';

export interface SessionFacts {
  /** The server process stays the same from statement to statement, and a lock taken by one is held by the next. */
  readonly isOneSession: boolean;
  /** A notification arrives on the connection that listens for it. */
  readonly receivesNotifications: boolean;
}

const NOTIFICATION_TIMEOUT_MS = 2_000;

/**
 * Transaction pooling breaks session locks and LISTEN, which leases need: both belong to the server connection, and the
 * pooler gives that to the next client.
 */
export async function checkSession(client: Client): Promise<SessionFacts> {
  const channel = `posthorn_doctor_${randomBytes(8).toString('hex')}`;
  const lock = randomBytes(6).readUIntBE(0, 6);
  const pids = new Set<number>();
  const recordPid = async (): Promise<void> => {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    pids.add(rows[0]!.pid);
  };
  await recordPid();
  await client.query('select pg_advisory_lock($1)', [lock]);
  const received = new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => resolve(false), NOTIFICATION_TIMEOUT_MS);
    client.on('notification', (message) => {
      if (message.channel !== channel) return;
      clearTimeout(timer);
      resolve(true);
    });
  });
  await client.query(`listen ${channel}`);
  await recordPid();
  await client.query('select pg_notify($1, $2)', [channel, '']);
  const receivesNotifications = await received;
  await recordPid();
  const { rows } = await client.query<{ held: boolean }>('select pg_advisory_unlock($1) as held', [lock]);
  await client.query(`unlisten ${channel}`);
  return { isOneSession: pids.size === 1 && rows[0]!.held, receivesNotifications };
}
