/** Inboxes and the requests in them. Callers pass the time, so that expiry follows one clock. */
import { ADVISORY_LOCKS } from '../advisory-locks.ts';
import { type Client, inTransaction, type Pool } from '../database.ts';
import { ensureTenant } from './tenants.ts';

export interface InboxAnswer {
  /** The status that requests get. */
  readonly status: number;
  readonly delay_ms: number;
  /** Cut the connection instead of answering. */
  readonly reset: boolean;
}

export interface Inbox {
  readonly token: string;
  readonly tenant: string;
  readonly answer: InboxAnswer;
  /** All requests, including those that are no longer stored. */
  readonly received: number;
  readonly createdAt: number;
  readonly expiresAt: number;
}

export interface ReceivedRequest {
  readonly number: number;
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly truncated: boolean;
  readonly signature: { readonly verdict: 'valid' | 'invalid' | 'unknown'; readonly detail: string };
  readonly answered: InboxAnswer;
}

interface InboxRow {
  readonly token: string;
  readonly tenant: string;
  readonly answer: InboxAnswer;
  readonly received: string;
  readonly created_at: Date;
  readonly expires_at: Date;
}

const COLUMNS = 'i.token, i.tenant, i.answer, i.received, i.created_at, i.expires_at';

/** An inbox that an endpoint delivers to does not expire: its deliveries would become dead letters. */
const IS_LIVE = `(i.expires_at > $1 or exists (
  select from posthorn.endpoints e
   where e.tenant = i.tenant and e.deleted_at is null and right(e.url, length(i.token) + 7) = '/inbox/' || i.token))`;

const toInbox = (row: InboxRow): Inbox => ({
  token: row.token,
  tenant: row.tenant,
  answer: row.answer,
  received: Number(row.received),
  createdAt: row.created_at.getTime(),
  expiresAt: row.expires_at.getTime(),
});

export type NewInbox = Pick<Inbox, 'token' | 'tenant' | 'answer' | 'createdAt' | 'expiresAt'>;

/** Creates the inbox, or returns which limit it would exceed. */
export async function createInbox(
  pool: Pool,
  inbox: NewInbox,
  limits: { readonly inboxes: number; readonly inboxesPerTenant: number },
): Promise<Inbox | 'inboxes' | 'inboxesPerTenant'> {
  return inTransaction(pool, async (client) => {
    await client.query('select pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.inboxes]);
    await deleteExpired(client, inbox.createdAt);
    const { rows: counts } = await client.query<{ all: string; own: string }>(
      'select count(*) as all, count(*) filter (where tenant = $1) as own from posthorn.inboxes',
      [inbox.tenant],
    );
    if (Number(counts[0]!.all) >= limits.inboxes) return 'inboxes';
    if (Number(counts[0]!.own) >= limits.inboxesPerTenant) return 'inboxesPerTenant';
    await ensureTenant(client, inbox.tenant);
    const { rows } = await client.query<InboxRow>(
      `insert into posthorn.inboxes as i (token, tenant, answer, created_at, expires_at) values ($1, $2, $3, $4, $5)
       returning ${COLUMNS}`,
      [inbox.token, inbox.tenant, inbox.answer, new Date(inbox.createdAt), new Date(inbox.expiresAt)],
    );
    return toInbox(rows[0]!);
  });
}

/** Newest first; null: of all tenants. */
export async function listInboxes(pool: Pool, nowMs: number, tenant: string | null): Promise<Inbox[]> {
  const { rows } = await pool.query<InboxRow>(
    `select ${COLUMNS} from posthorn.inboxes i where ${IS_LIVE} and ($2::text is null or i.tenant = $2)
      order by i.created_at desc, i.token`,
    [new Date(nowMs), tenant],
  );
  return rows.map(toInbox);
}

export async function findInbox(pool: Pool, nowMs: number, token: string): Promise<Inbox | null> {
  const { rows } = await pool.query<InboxRow>({
    name: 'find_inbox',
    text: `select ${COLUMNS} from posthorn.inboxes i where i.token = $2 and ${IS_LIVE}`,
    values: [new Date(nowMs), token],
  });
  return rows[0] === undefined ? null : toInbox(rows[0]);
}

export async function renewInbox(pool: Pool, token: string, expiresAt: number): Promise<void> {
  await pool.query('update posthorn.inboxes set expires_at = $2 where token = $1', [
    token,
    new Date(expiresAt),
  ]);
}

/** Null: it was deleted meanwhile. */
export async function setInboxAnswer(
  pool: Pool,
  token: string,
  changes: Partial<InboxAnswer>,
): Promise<Inbox | null> {
  const { rows } = await pool.query<InboxRow>(
    `update posthorn.inboxes i set answer = i.answer || $2 where token = $1 returning ${COLUMNS}`,
    [token, changes],
  );
  return rows[0] === undefined ? null : toInbox(rows[0]);
}

export async function deleteInbox(pool: Pool, token: string): Promise<void> {
  await pool.query('delete from posthorn.inboxes where token = $1', [token]);
}

export async function clearInbox(pool: Pool, token: string): Promise<void> {
  await pool.query('delete from posthorn.inbox_requests where token = $1', [token]);
}

// One statement. Requests that arrive at the same moment do not see each other, so a few too many may stay until the
// next one arrives.
const KEEP = {
  name: 'keep_inbox_request',
  text: `
    with counted as (
      update posthorn.inboxes set received = received + 1, expires_at = $3 where token = $1 returning received
    ), surplus as (
      delete from posthorn.inbox_requests r
       using (select number, row_number() over newest as place, sum(bytes) over newest as total
                from posthorn.inbox_requests where token = $1 window newest as (order by number desc)) stored
       where r.token = $1 and r.number = stored.number and (stored.place >= $4 or stored.total + $5 > $6)
    )
    insert into posthorn.inbox_requests
           (token, number, received_at, bytes, method, path, headers, body, truncated, verdict, detail, answered)
    select $1, received, $2, $5, $7, $8, $9, $10, $11, $12, $13, $14 from counted
    returning number`,
};

export interface KeepLimits {
  readonly requestsPerInbox: number;
  readonly bytesPerInbox: number;
}

/** Stores a request and deletes the oldest beyond the limits. Returns its number; null: the inbox was deleted. */
export async function keepRequest(
  pool: Pool,
  inbox: { readonly token: string; readonly expiresAt: number },
  request: Omit<ReceivedRequest, 'number'>,
  limits: KeepLimits,
): Promise<number | null> {
  const { method, path, headers, body, truncated, signature, answered } = request;
  const { rows } = await pool.query<{ number: string }>({
    ...KEEP,
    values: [
      inbox.token,
      new Date(request.at),
      new Date(inbox.expiresAt),
      limits.requestsPerInbox,
      sizeOf(request),
      limits.bytesPerInbox,
      method,
      path,
      JSON.stringify(headers),
      body,
      truncated,
      signature.verdict,
      signature.detail,
      answered,
    ],
  });
  return rows[0] === undefined ? null : Number(rows[0].number);
}

function sizeOf({ body, headers, path }: Omit<ReceivedRequest, 'number'>): number {
  let size = body.length + path.length;
  for (const [name, value] of Object.entries(headers)) size += name.length + value.length;
  return size;
}

interface RequestRow extends Omit<ReceivedRequest, 'number' | 'at' | 'signature'> {
  readonly number: string;
  readonly received_at: Date;
  readonly verdict: ReceivedRequest['signature']['verdict'];
  readonly detail: string;
}

/** Newest first. `since` and `until` are milliseconds since 1970; null: no bound. */
export async function listRequests(
  pool: Pool,
  token: string,
  {
    since,
    until,
    limit,
  }: { readonly since: number | null; readonly until: number | null; readonly limit: number },
): Promise<ReceivedRequest[]> {
  const { rows } = await pool.query<RequestRow>(
    `select number, received_at, method, path, headers, body, truncated, verdict, detail, answered
       from posthorn.inbox_requests
      where token = $1 and ($3::timestamptz is null or received_at >= $3) and ($4::timestamptz is null or received_at < $4)
      order by number desc limit $2`,
    [token, limit, since === null ? null : new Date(since), until === null ? null : new Date(until)],
  );
  return rows.map(({ number, received_at, verdict, detail, ...row }) => ({
    ...row,
    number: Number(number),
    at: received_at.getTime(),
    signature: { verdict, detail },
  }));
}

/** Deletes expired inboxes, and requests that arrived before `oldestRequestMs`. */
export async function deleteOldInboxes(pool: Pool, nowMs: number, oldestRequestMs: number): Promise<void> {
  await deleteExpired(pool, nowMs);
  await pool.query('delete from posthorn.inbox_requests where received_at < $1', [new Date(oldestRequestMs)]);
}

async function deleteExpired(client: Pick<Client, 'query'>, nowMs: number): Promise<void> {
  await client.query(`delete from posthorn.inboxes i where not ${IS_LIVE}`, [new Date(nowMs)]);
}
