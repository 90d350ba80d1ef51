import { BlockList, isIP } from 'node:net';

export const ADDRESS_RANGE_RULE = 'must be an IP address or a CIDR range such as "203.0.113.0/24"';

const PREFIX_LENGTH = /^\d{1,3}$/;

/**
 * Returns a range as `address/prefix`, or null if `given` is not a range. A plain address is a range of one address.
 */
export function readAddressRange(given: string): string | null {
  const [address = '', prefix, ...more] = given.split('/');
  const family = isIP(address);
  if (family === 0 || more.length > 0 || address.includes('%')) return null;
  const widest = family === 4 ? 32 : 128;
  if (prefix === undefined) return `${address}/${widest}`;
  return PREFIX_LENGTH.test(prefix) && Number(prefix) <= widest ? `${address}/${Number(prefix)}` : null;
}

/** Returns a function that says whether an address is in one of the ranges, which are `address/prefix`. */
export function matchAddresses(ranges: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const range of ranges) {
    const [address, prefix] = range.split('/') as [string, string];
    list.addSubnet(address, Number(prefix), familyOf(address));
  }
  // BlockList does not know addresses with a zone (fe80::1%eth0).
  return (address) => isIP(address) !== 0 && !address.includes('%') && list.check(address, familyOf(address));
}

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4');
