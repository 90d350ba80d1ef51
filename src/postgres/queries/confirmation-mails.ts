/** Confirmations that were sent to e-mail addresses in the last day. */
import type { Uuid } from '../../domain/ids.ts';
import { ADVISORY_LOCKS } from '../advisory-locks.ts';
import { inTransaction, type Pool, type Queryable } from '../database.ts';

export interface ConfirmationLimits {
  readonly perAddress: number;
  readonly perTenant: number;
}

interface Sender {
  readonly tenant: string;
  readonly addressHash: Buffer;
}

/** Whether one more confirmation may be sent. */
export async function maySendConfirmation(
  client: Queryable,
  { tenant, addressHash }: Sender,
  limits: ConfirmationLimits,
): Promise<boolean> {
  const { rows } = await client.query<{ allowed: boolean }>(
    `select (select count(*) from posthorn.confirmation_mails
              where address_hash = $1 and sent_at > now() - interval '1 day') < $3
        and (select count(*) from posthorn.confirmation_mails
              where tenant = $2 and sent_at > now() - interval '1 day') < $4 as allowed`,
    [addressHash, tenant, limits.perAddress, limits.perTenant],
  );
  return rows[0]!.allowed;
}

/** Counts a confirmation. Returns false if it may not be sent. */
export function claimConfirmation(
  pool: Pool,
  claim: Sender & { readonly eventId: Uuid },
  limits: ConfirmationLimits,
): Promise<boolean> {
  return inTransaction(pool, async (client) => {
    // Two concurrent claims must not both take the last place.
    await client.query('select pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.confirmationMails]);
    if (!(await maySendConfirmation(client, claim, limits))) return false;
    await client.query(
      'insert into posthorn.confirmation_mails (tenant, address_hash, event_id) values ($1, $2, $3)',
      [claim.tenant, claim.addressHash, claim.eventId],
    );
    return true;
  });
}

/** Removes the last claim of the event. Call it if the message was not sent. */
export async function releaseConfirmation(pool: Pool, addressHash: Buffer, eventId: Uuid): Promise<void> {
  await pool.query(
    `delete from posthorn.confirmation_mails
      where ctid = (select ctid from posthorn.confirmation_mails
                     where address_hash = $1 and event_id = $2 order by sent_at desc limit 1)`,
    [addressHash, eventId],
  );
}
