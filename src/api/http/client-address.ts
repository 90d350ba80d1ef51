/** Where a request came from, seen through the proxies that the operator trusts. */
import { BlockList, isIP } from 'node:net';

export type IsTrustedProxy = (address: string) => boolean;

export function trustProxies(ranges: readonly string[]): IsTrustedProxy {
  const trusted = new BlockList();
  for (const range of ranges) {
    const [address, prefix] = range.split('/') as [string, string];
    trusted.addSubnet(address, Number(prefix), familyOf(address));
  }
  // With a zone (fe80::1%eth0) it is no address that a range could hold.
  return (address) =>
    isIP(address) !== 0 && !address.includes('%') && trusted.check(address, familyOf(address));
}

/**
 * Each proxy adds the address that it was called from at the end of `X-Forwarded-For`. Read from there, an entry is
 * believed as long as whoever wrote it is trusted; what a client put there itself stands before all of them.
 */
export function clientAddress(
  peer: string,
  forwardedFor: string | string[] | undefined,
  isTrusted: IsTrustedProxy,
): string {
  let address = plain(peer);
  const hops = String(forwardedFor ?? '').split(',');
  for (const hop of hops.toReversed()) {
    const next = plain(hop.trim());
    if (isIP(next) === 0 || !isTrusted(address)) break;
    address = next;
  }
  return address;
}

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** An IPv4 address on a socket that takes both is written as an IPv6 one. */
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '');
