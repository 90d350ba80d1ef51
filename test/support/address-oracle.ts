/**
 * Which addresses are public, written a second time: as plain numbers, from the IANA special-purpose registries and the
 * list in docs/security.md. It shares no code and no library with the guard that it judges.
 */

/** First and last address of each range of IPv4 that must not be called. */
const FORBIDDEN_V4: readonly (readonly [string, string])[] = [
  ['0.0.0.0', '0.255.255.255'],
  ['10.0.0.0', '10.255.255.255'],
  ['100.64.0.0', '100.127.255.255'],
  ['127.0.0.0', '127.255.255.255'],
  ['168.63.129.16', '168.63.129.16'],
  ['169.254.0.0', '169.254.255.255'],
  ['172.16.0.0', '172.31.255.255'],
  ['192.0.0.0', '192.0.0.255'],
  ['192.0.2.0', '192.0.2.255'],
  ['192.88.99.0', '192.88.99.255'],
  ['192.168.0.0', '192.168.255.255'],
  ['198.18.0.0', '198.19.255.255'],
  ['198.51.100.0', '198.51.100.255'],
  ['203.0.113.0', '203.0.113.255'],
  ['224.0.0.0', '255.255.255.255'],
];

/** The same for IPv6, as the first four groups, inside 2000::/3. Everything outside of it is forbidden. */
const FORBIDDEN_V6: readonly (readonly [bigint, bigint])[] = [
  [0x2001_0000_0000_0000n, 0x2001_01ff_ffff_ffffn],
  [0x2001_0db8_0000_0000n, 0x2001_0db8_ffff_ffffn],
  [0x2002_0000_0000_0000n, 0x2002_ffff_ffff_ffffn],
  [0x3fff_0000_0000_0000n, 0x3fff_0fff_ffff_ffffn],
];

export const v4Number = (dotted: string): number =>
  dotted.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);

const RANGES_V4 = FORBIDDEN_V4.map(([first, last]) => [v4Number(first), v4Number(last)] as const);

/** The addresses at the edges of the ranges, and their neighbours. */
export const V4_EDGES: readonly number[] = RANGES_V4.flatMap(([first, last]) => [
  first - 1,
  first,
  last,
  last + 1,
]).filter((address) => address >= 0 && address <= 0xffff_ffff);

export const V6_EDGES: readonly bigint[] = FORBIDDEN_V6.concat([
  [0x2000_0000_0000_0000n, 0x3fff_ffff_ffff_ffffn],
  [0xfc00_0000_0000_0000n, 0xfdff_ffff_ffff_ffffn],
  [0xfe80_0000_0000_0000n, 0xfebf_ffff_ffff_ffffn],
]).flatMap(([first, last]) => [
  (first << 64n) - 1n,
  first << 64n,
  ((last + 1n) << 64n) - 1n,
  ((last + 1n) << 64n) % (1n << 128n),
]);

/** What the operator allows and denies, in the same form. */
export interface OracleRules {
  readonly allowV4: readonly (readonly [string, string])[];
  readonly denyV4: readonly (readonly [string, string])[];
}

const isIn = (address: number, ranges: readonly (readonly [string, string])[]): boolean =>
  ranges.some(([first, last]) => address >= v4Number(first) && address <= v4Number(last));

export function mayCallV4(address: number, { allowV4, denyV4 }: OracleRules): boolean {
  if (isIn(address, denyV4)) return false;
  return isIn(address, allowV4) || !RANGES_V4.some(([first, last]) => address >= first && address <= last);
}

const bits = (address: bigint, from: number, count: number): bigint =>
  (address >> BigInt(128 - from - count)) & ((1n << BigInt(count)) - 1n);

export function mayCallV6(address: bigint, rules: OracleRules): boolean {
  // NAT64: the gateway connects to the IPv4 address inside.
  if (bits(address, 0, 96) === 0x0064_ff9b_0000_0000_0000_0000n)
    return mayCallV4(Number(bits(address, 96, 32)), rules);
  if (bits(address, 0, 48) === 0x0064_ff9b_0001n) {
    // RFC 6052: bits 64 to 71 are skipped, and the prefix may have 48, 56, 64 or 96 bits.
    const inside = [
      (bits(address, 48, 16) << 16n) | bits(address, 72, 16),
      (bits(address, 56, 8) << 24n) | bits(address, 72, 24),
      bits(address, 72, 32),
      bits(address, 96, 32),
    ];
    return inside.every((v4) => mayCallV4(Number(v4), rules));
  }
  if (bits(address, 0, 3) !== 1n) return false;
  const isIsatap = bits(address, 80, 16) === 0x5efen && [0n, 0x200n].includes(bits(address, 64, 16));
  const network = bits(address, 0, 64);
  return !isIsatap && !FORBIDDEN_V6.some(([first, last]) => network >= first && network <= last);
}
