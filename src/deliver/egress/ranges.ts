/**
 * Addresses that an endpoint's URL may not reach. For IPv4 a list of forbidden ranges; for IPv6 only global unicast is
 * allowed, with exceptions, so that ranges that are assigned in the future are forbidden.
 * Sources: the IANA special-purpose registries, RFC 6890 and successors, and cloud metadata services.
 */
import ipaddr from 'ipaddr.js';

export type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type Range = [Address, number];

const v4 = (cidr: string): [ipaddr.IPv4, number] => ipaddr.IPv4.parseCIDR(cidr);
const v6 = (cidr: string): [ipaddr.IPv6, number] => ipaddr.IPv6.parseCIDR(cidr);

export const FORBIDDEN_V4 = [
  '0.0.0.0/8', // "this network": Linux connects 0.0.0.0 to loopback
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT; Alibaba metadata at 100.100.100.200
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure's platform address: a public address for internal services
  '169.254.0.0/16', // link-local; most clouds' metadata at 169.254.169.254
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments; Oracle metadata at 192.0.0.192
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarking
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
].map(v4);

const GLOBAL_UNICAST = v6('2000::/3');

export const FORBIDDEN_V6 = [
  '2001::/23', // protocol assignments: Teredo, ORCHID, benchmarking
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4: carries any IPv4 address
  '3fff::/20', // documentation
].map(v6);

const NAT64 = v6('64:ff9b::/96');
const NAT64_LOCAL = v6('64:ff9b:1::/48');
/** An interface id of 0:5efe:a.b.c.d or 200:5efe:a.b.c.d is ISATAP: a tunnel to that IPv4 address. */
const ISATAP = 0x5efe;

const embedded = (bytes: number[], ...at: [number, number, number, number]): ipaddr.IPv4 =>
  new ipaddr.IPv4(at.map((index) => bytes[index]!));

/** Returns the IPv4 addresses that a NAT64 gateway may connect to. Null: not a NAT64 address. */
export function nat64Targets(address: Address): ipaddr.IPv4[] | null {
  if (address.kind() !== 'ipv6') return null;
  const bytes = address.toByteArray();
  if (address.match(NAT64)) return [embedded(bytes, 12, 13, 14, 15)];
  // In the local-use prefix the operator chooses the length: check every position that RFC 6052 allows.
  if (address.match(NAT64_LOCAL))
    return [
      embedded(bytes, 6, 7, 9, 10),
      embedded(bytes, 7, 9, 10, 11),
      embedded(bytes, 9, 10, 11, 12),
      embedded(bytes, 12, 13, 14, 15),
    ];
  return null;
}

/** True if the address is not public. The caller checks NAT64 addresses. */
export function isReserved(address: Address): boolean {
  if (address.kind() === 'ipv4') return FORBIDDEN_V4.some((range) => (address as ipaddr.IPv4).match(range));
  const v6Address = address as ipaddr.IPv6;
  return (
    !v6Address.match(GLOBAL_UNICAST) ||
    (v6Address.parts[5] === ISATAP && (v6Address.parts[4]! & ~0x200) === 0) ||
    FORBIDDEN_V6.some((range) => v6Address.match(range))
  );
}
