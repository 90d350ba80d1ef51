import type { KeyScope } from '../../domain/access-scopes.ts';
import type { Uuid } from '../../domain/ids.ts';
import type { Pool, Queryable } from '../database.ts';
import { CHANNEL_NAMES } from '../notifier-channels.ts';

/** The session of a user who has signed in. */
export interface SessionRecord {
  readonly id: Uuid;
  readonly subject: string;
  readonly name: string;
  readonly scope: KeyScope;
  readonly tenant: string | null;
  readonly expires_at: Date;
}

/** Also deletes sessions that have expired. */
export async function createSession(
  client: Queryable,
  session: Omit<SessionRecord, 'expires_at'> & { readonly hash: Buffer },
  lifetimeMs: number,
): Promise<void> {
  await client.query(
    `with expired as (delete from posthorn.console_sessions where expires_at < now())
     insert into posthorn.console_sessions (id, hash, subject, name, scope, tenant, expires_at)
     values ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7::float8 / 1000))`,
    [session.id, session.hash, session.subject, session.name, session.scope, session.tenant, lifetimeMs],
  );
}

export async function findSession(pool: Pool, hash: Buffer): Promise<SessionRecord | null> {
  const { rows } = await pool.query<SessionRecord>({
    name: 'find_session',
    text: `select id, subject, name, scope, tenant, expires_at from posthorn.console_sessions
            where hash = $1 and expires_at > now()`,
    values: [hash],
  });
  return rows[0] ?? null;
}

/** Notifies all processes, so that the session ends everywhere immediately. Returns false if it has ended already. */
export async function deleteSession(client: Queryable, hash: Buffer): Promise<boolean> {
  const { rowCount } = await client.query(
    `with deleted as (delete from posthorn.console_sessions where hash = $1 returning id)
     select pg_notify('${CHANNEL_NAMES.keys}', '') from deleted`,
    [hash],
  );
  return rowCount === 1;
}
