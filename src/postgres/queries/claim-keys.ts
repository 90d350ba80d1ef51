import type { UnmatchedReason } from '../../domain/event.ts';
import type { Uuid } from '../../domain/ids.ts';
import type { ClaimHolder, ClaimOptions, KeyClaim } from '../../ports/event-log.ts';
import { idempotencyKeyName } from '../../ports/event-store.ts';
import type { Pool } from '../database.ts';

// Sorted, or two batches with two keys in common could deadlock. An expired key is taken over.
const CLAIM = {
  name: 'claim_keys',
  text: `
    insert into posthorn.idempotency_keys as k (tenant, key, event_id, fingerprint, expires_at, claimed)
    select tenant, key, event_id, fingerprint, greatest(now(), to_timestamp($5)) + make_interval(secs => $6), true
      from unnest($1::text[], $2::text[], $3::uuid[], $4::bytea[]) as c(tenant, key, event_id, fingerprint)
     order by tenant, key
        on conflict (tenant, key) do update
       set event_id = excluded.event_id, fingerprint = excluded.fingerprint, expires_at = excluded.expires_at, claimed = true
     where k.expires_at <= least(now(), to_timestamp($7))
    returning event_id`,
};

// A separate statement, because the statement that lost a key cannot see the row that holds it.
const HOLDERS = {
  name: 'claimed_key_holders',
  text: `
    select k.tenant, k.key, k.event_id, k.fingerprint, k.claimed, coalesce(e.deliveries, 0) as deliveries, coalesce(e.type, '') as type,
           e.options ->> 'unmatched_reason' as unmatched_reason
      from unnest($1::text[], $2::text[]) as wanted(tenant, key)
      join posthorn.idempotency_keys k using (tenant, key)
      left join posthorn.events e on e.id = k.event_id`,
};

/** How often to claim keys. Another try is needed if a key's holder was deleted between the two statements. */
const MAX_TRIES = 5;

export async function claimKeys(
  pool: Pool,
  claims: readonly KeyClaim[],
  options: ClaimOptions,
): Promise<Map<string, ClaimHolder>> {
  const holders = new Map<string, ClaimHolder>();
  let open = claims;
  for (let tries = 0; open.length > 0; tries += 1) {
    if (tries === MAX_TRIES)
      throw new Error(`idempotency keys lost their holder during each of ${MAX_TRIES} tries to claim them`);
    const won = await claimFree(pool, open, options);
    const lost = open.filter((claim) => {
      const isWon = won.has(claim.eventId);
      if (isWon) holders.set(nameOf(claim), holderOf(claim));
      return !isWon;
    });
    if (lost.length > 0)
      for (const [name, holder] of await findHolders(pool, lost)) holders.set(name, holder);
    open = lost.filter((claim) => !holders.has(nameOf(claim)));
  }
  return holders;
}

const nameOf = ({ tenant, key }: Pick<KeyClaim, 'tenant' | 'key'>): string => idempotencyKeyName(tenant, key);

const holderOf = ({ eventId, fingerprint }: KeyClaim): ClaimHolder => ({
  eventId,
  fingerprint,
  isClaimed: true,
  deliveries: 0,
  unmatchedReason: null,
  type: '',
});

async function claimFree(
  pool: Pool,
  claims: readonly KeyClaim[],
  { now, idempotencyTtlMs, mayExpireKeys }: ClaimOptions,
): Promise<ReadonlySet<Uuid>> {
  const { rows } = await pool.query<{ event_id: Uuid }>({
    ...CLAIM,
    values: [
      claims.map(({ tenant }) => tenant),
      claims.map(({ key }) => key),
      claims.map(({ eventId }) => eventId),
      claims.map(({ fingerprint }) => fingerprint),
      now / 1000,
      idempotencyTtlMs / 1000,
      mayExpireKeys ? now / 1000 : 0,
    ],
  });
  return new Set(rows.map(({ event_id }) => event_id));
}

async function findHolders(pool: Pool, claims: readonly KeyClaim[]): Promise<Map<string, ClaimHolder>> {
  const { rows } = await pool.query<{
    tenant: string;
    key: string;
    event_id: Uuid;
    fingerprint: Buffer;
    claimed: boolean;
    deliveries: number;
    type: string;
    unmatched_reason: UnmatchedReason | null;
  }>({ ...HOLDERS, values: [claims.map(({ tenant }) => tenant), claims.map(({ key }) => key)] });
  return new Map(
    rows.map((row) => [
      nameOf(row),
      {
        eventId: row.event_id,
        fingerprint: row.fingerprint,
        isClaimed: row.claimed,
        deliveries: row.deliveries,
        unmatchedReason: row.unmatched_reason,
        type: row.type,
      },
    ]),
  );
}
