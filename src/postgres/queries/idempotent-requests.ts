import type { Uuid } from '../../domain/ids.ts';
import type { Pool } from '../database.ts';
import type { Sealed } from '../secret-box.ts';

export interface RequestClaim {
  readonly id: Uuid;
  readonly owner: string;
  readonly key: string;
  readonly fingerprint: Buffer;
}

export interface EarlierRequest {
  readonly id: Uuid;
  readonly fingerprint: Buffer;
  /** Null: the request is still in progress. */
  readonly answer: Sealed | null;
}

/** What an answer is sealed for: in another row it cannot be opened. */
export const sealOwnerOf = (id: Uuid): string => `answer ${id}`;

// Of two concurrent requests, the second waits for the first one's commit and then finds its row. An expired key can be
// taken over by any request, an expired claim only by the same request. A claim that ends much later than a new claim
// would end was made before the clock stepped back, and counts as expired. Twice the time leaves room for a changed
// setting.
const CLAIM = {
  name: 'claim_request',
  text: `
    insert into posthorn.idempotent_requests as r (id, owner, key, fingerprint, claimed_until, expires_at)
    values ($1, $2, $3, $4, clock_timestamp() + make_interval(secs => $5), clock_timestamp() + make_interval(secs => $6))
        on conflict (owner, key) do update
       set id = excluded.id, fingerprint = excluded.fingerprint, claimed_until = excluded.claimed_until,
           expires_at = excluded.expires_at, key_id = null, answer = null, tenant = null
     where r.expires_at <= clock_timestamp()
        or (r.answer is null and r.fingerprint = excluded.fingerprint
            and (r.claimed_until <= clock_timestamp() or r.claimed_until > clock_timestamp() + 2 * make_interval(secs => $5)))
    returning id`,
};

// A separate statement, because a statement that hits a conflict does not see the other row.
const FIND = {
  name: 'find_request',
  text: 'select id, fingerprint, key_id, answer from posthorn.idempotent_requests where owner = $1 and key = $2',
};

const TRIES = 5;

/** Claims the key. Returns null if the claim is ours, otherwise the earlier request with this key. */
export async function claimRequest(
  pool: Pool,
  claim: RequestClaim,
  times: { claimMs: number; ttlMs: number },
): Promise<EarlierRequest | null> {
  const { id, owner, key, fingerprint } = claim;
  const seconds = [times.claimMs / 1000, Math.max(times.ttlMs, times.claimMs) / 1000];
  for (let tries = 0; tries < TRIES; tries += 1) {
    const { rowCount } = await pool.query({ ...CLAIM, values: [id, owner, key, fingerprint, ...seconds] });
    if (rowCount === 1) return null;
    const { rows } = await pool.query<{
      id: Uuid;
      fingerprint: Buffer;
      key_id: string | null;
      answer: Buffer | null;
    }>({ ...FIND, values: [owner, key] });
    const [found] = rows;
    // Released between the two statements: try to claim it again.
    if (found === undefined) continue;
    const { key_id: keyId, answer } = found;
    return {
      id: found.id,
      fingerprint: found.fingerprint,
      answer: keyId === null || answer === null ? null : { keyId, ciphertext: answer },
    };
  }
  throw new Error(
    'Other requests claimed and released the same idempotency key during every try to claim it.',
  );
}

/** Stores the answer with the tenant that it is about. Returns false if another request has taken the claim over. */
export async function storeAnswer(
  pool: Pool,
  { id, tenant }: { readonly id: Uuid; readonly tenant: string | null },
  answer: Sealed,
  ttlMs: number,
): Promise<boolean> {
  const { rowCount } = await pool.query({
    name: 'store_answer',
    text: `update posthorn.idempotent_requests
              set key_id = $2, answer = $3, tenant = $5, expires_at = clock_timestamp() + make_interval(secs => $4)
            where id = $1`,
    values: [id, answer.keyId, answer.ciphertext, ttlMs / 1000, tenant],
  });
  return rowCount === 1;
}

/** Frees the key of a request that failed, so that it can be repeated. */
export async function releaseClaim(pool: Pool, id: Uuid): Promise<void> {
  await pool.query('delete from posthorn.idempotent_requests where id = $1 and answer is null', [id]);
}

export async function deleteExpiredRequests(pool: Pool, chunk: number): Promise<number> {
  const { rowCount } = await pool.query(
    `delete from posthorn.idempotent_requests
      where id = any (array(select id from posthorn.idempotent_requests where expires_at <= now()
                             order by expires_at limit $1 for update skip locked))`,
    [chunk],
  );
  return rowCount ?? 0;
}
