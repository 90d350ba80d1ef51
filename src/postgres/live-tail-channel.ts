/** How live tails are heard of across processes: PostgreSQL's LISTEN and NOTIFY, on connections of their own. */
import type { Pool } from './database.ts';

/** What happens, from processes that were asked for it. */
const TAIL_CHANNEL = 'posthorn_tail';
/** Who wants to hear what. Everybody listens to this one. */
export const TAIL_INTEREST_CHANNEL = 'posthorn_tail_interest';

const notify = async (pool: Pool, channel: string, payloads: readonly string[]): Promise<void> => {
  await pool.query({
    name: 'notify_live_tail',
    text: 'select pg_notify($1, payload) from unnest($2::text[]) as payload',
    values: [channel, payloads],
  });
};

export const sendToTails = (pool: Pool, payloads: readonly string[]): Promise<void> =>
  notify(pool, TAIL_CHANNEL, payloads);

export const announceTail = (pool: Pool, payload: string): Promise<void> =>
  notify(pool, TAIL_INTEREST_CHANNEL, [payload]);

/** Until the returned function is called, or the connection is lost. */
export async function listenToTails(
  pool: Pool,
  heard: (payload: string) => void,
  lost: () => void,
): Promise<() => void> {
  const client = await pool.connect();
  let closed = false;
  const close = (): void => {
    if (closed) return;
    closed = true;
    client.removeAllListeners('notification');
    client.release(true);
  };
  client.on('notification', ({ payload }) => heard(payload ?? ''));
  client.on('error', () => {
    if (closed) return;
    close();
    lost();
  });
  try {
    await client.query(`listen ${TAIL_CHANNEL}`);
  } catch (error) {
    close();
    throw error;
  }
  return close;
}
