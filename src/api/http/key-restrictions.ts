/** When and from where a key may be used. */
import { matchAddresses } from '../../domain/address-range.ts';
import { Problem } from '../../domain/problem.ts';
import type { KeyRecord } from '../../postgres/queries/keys.ts';

export interface KeyRestrictions {
  /** In milliseconds since 1970. Null: never. */
  readonly expiresAt: number | null;
  /** Null: the key works from every address. */
  readonly isAllowedAddress: ((address: string) => boolean) | null;
}

export const UNRESTRICTED: KeyRestrictions = { expiresAt: null, isAllowedAddress: null };

export function restrictionsOf({ expires_at, allowed_ips }: KeyRecord): KeyRestrictions {
  if (expires_at === null && allowed_ips === null) return UNRESTRICTED;
  return {
    expiresAt: expires_at?.getTime() ?? null,
    isAllowedAddress: allowed_ips && matchAddresses(allowed_ips),
  };
}

const isExpired = ({ expiresAt }: KeyRestrictions, nowMs: number): boolean =>
  expiresAt !== null && expiresAt <= nowMs;

/** Throws `unauthorized` if the key has expired, and `forbidden` if the address is not allowed. */
export function checkRestrictions(
  restrictions: KeyRestrictions,
  nowMs: number,
  readAddress: () => string,
): void {
  if (isExpired(restrictions, nowMs))
    throw new Problem(
      'unauthorized',
      `This API key expired at ${new Date(restrictions.expiresAt!).toISOString()}. Use another key.`,
    );
  if (restrictions.isAllowedAddress === null) return;
  const address = readAddress();
  if (!restrictions.isAllowedAddress(address))
    throw new Problem(
      'forbidden',
      `This key may not be used from ${address || 'an unknown address'}: it is not in \`allowed_ips\`.`,
    );
}
