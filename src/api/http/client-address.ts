/** The address of the client, behind the proxies that the operator trusts. */
import { isIP } from 'node:net';
import { matchAddresses } from '../../domain/address-range.ts';

export type IsTrustedProxy = (address: string) => boolean;

export const trustProxies = (ranges: readonly string[]): IsTrustedProxy => matchAddresses(ranges);

/**
 * Each proxy appends the address of its caller to `X-Forwarded-For`. Reading from the end, an entry counts only if the
 * proxy that wrote it is trusted, so a client cannot forge its address.
 */
export function clientAddress(
  peer: string,
  forwardedFor: string | string[] | undefined,
  isTrusted: IsTrustedProxy,
): string {
  let address = withoutMapping(peer);
  const hops = String(forwardedFor ?? '').split(',');
  for (const hop of hops.toReversed()) {
    const next = withoutMapping(hop.trim());
    if (isIP(next) === 0 || !isTrusted(address)) break;
    address = next;
  }
  return address;
}

/** A dual-stack socket reports IPv4 addresses as IPv6 (`::ffff:192.0.2.1`). */
const withoutMapping = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '');
