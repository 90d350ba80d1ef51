/**
 * The owner of an e-mail address must agree before a tenant can send notices to it.
 *
 *   created ── confirmation sent ──▶ unconfirmed ── link opened, button pressed ──▶ confirmed
 *                                        └── the link expires: delete the notifier and create it again
 *
 * The link contains a sealed token, which only the message itself contains: the stored event does not, because the tenant
 * can read that. The token names the confirmation, so it works once. The number of messages per address and per tenant is
 * limited, whatever caused them (a new notifier, a retry, a replay).
 */
import { createHash } from 'node:crypto';
import type { ConfirmationGate } from '../deliver/index.ts';
import type { Clock } from '../domain/clock.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import { timeOfId, type Uuid } from '../domain/ids.ts';
import type { Pool } from '../postgres/database.ts';
import { claimConfirmation, releaseConfirmation } from '../postgres/queries/confirmation-mails.ts';
import type { SecretBox } from '../postgres/secret-box.ts';

export interface ConfirmationDependencies {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly secretBox: SecretBox;
  /** How long a link works. */
  readonly confirmationTtlMs: number;
  readonly publicUrl: string;
}

/** What the link of a confirmation says. */
export interface ConfirmationToken {
  readonly notifierId: Uuid;
  readonly confirmation: string;
  readonly expiresAt: number;
}

export const CONFIRM_PATH = '/notifiers/confirm';
const PURPOSE = 'posthorn notifier confirmation';
/** Per day. */
export const CONFIRMATION_LIMITS = { perAddress: 3, perTenant: 20 } as const;

export class Confirmations implements ConfirmationGate {
  readonly #dependencies: ConfirmationDependencies;

  constructor(dependencies: ConfirmationDependencies) {
    this.#dependencies = dependencies;
  }

  claim({ tenant, url }: Endpoint, { id }: EventContent): Promise<boolean> {
    const claim = { tenant, addressHash: hashOf(url), eventId: id };
    return claimConfirmation(this.#dependencies.pool, claim, CONFIRMATION_LIMITS);
  }

  release({ url }: Endpoint, { id }: EventContent): Promise<void> {
    return releaseConfirmation(this.#dependencies.pool, hashOf(url), id);
  }

  linkTo({ id, notifier }: Endpoint, event: EventContent): string {
    const { secretBox, confirmationTtlMs, publicUrl } = this.#dependencies;
    const token: ConfirmationToken = {
      notifierId: id,
      confirmation: notifier?.confirmation ?? '',
      expiresAt: timeOfId(event.id) + confirmationTtlMs,
    };
    const { keyId, ciphertext } = secretBox.seal(JSON.stringify(token), PURPOSE);
    return `${publicUrl}${CONFIRM_PATH}?token=${keyId}.${ciphertext.toString('base64url')}`;
  }

  /** Returns null if the text is not a valid token, or the token has expired. */
  read(text: string): ConfirmationToken | null {
    const { secretBox, clock } = this.#dependencies;
    const [keyId = '', ciphertext = ''] = text.split('.');
    try {
      const sealed = { keyId, ciphertext: Buffer.from(ciphertext, 'base64url') };
      const token = JSON.parse(secretBox.open(sealed, PURPOSE)) as ConfirmationToken;
      return token.expiresAt > clock.now() ? token : null;
    } catch {
      return null;
    }
  }
}

/** Ignores case and the part after a `+`: such addresses reach the same person. */
export function hashOf(mailto: string): Buffer {
  // The URL of an address has `%2B` instead of `+`.
  const mailbox = mailto.toLowerCase().replace(/(?<=[^:])(?:\+|%2b).*(?=@)/, '');
  return createHash('sha256').update(mailbox).digest();
}
