/** The address of the client, behind the proxies that the operator trusts. */
import { BlockList, isIP } from 'node:net';

export type IsTrustedProxy = (address: string) => boolean;

export function trustProxies(ranges: readonly string[]): IsTrustedProxy {
  const trusted = new BlockList();
  for (const range of ranges) {
    const [address, prefix] = range.split('/') as [string, string];
    trusted.addSubnet(address, Number(prefix), familyOf(address));
  }
  // BlockList does not know addresses with a zone (fe80::1%eth0).
  return (address) =>
    isIP(address) !== 0 && !address.includes('%') && trusted.check(address, familyOf(address));
}

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

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** A dual-stack socket reports IPv4 addresses as IPv6 (`::ffff:192.0.2.1`). */
const withoutMapping = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '');
