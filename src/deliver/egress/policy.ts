/** What may be called: plain settings, compiled once. The deny list outranks the allow list, that the built-in ranges. */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { type Address, isReserved, nat64Targets, type Range } from './ranges.ts';

export interface EgressPolicy {
  /** CIDRs (or single addresses) that are open in spite of the built-in ranges. */
  readonly allow: readonly string[];
  /** CIDRs that are closed, whatever else says otherwise. */
  readonly deny: readonly string[];
  readonly requireHttps: boolean;
  /** Development: `http://` to loopback, where loopback itself is allowed. */
  readonly allowHttpToLoopback: boolean;
  readonly allowedPorts: 'any' | readonly number[];
}

export const STRICT_EGRESS: EgressPolicy = {
  allow: [],
  deny: [],
  requireHttps: true,
  allowHttpToLoopback: false,
  allowedPorts: 'any',
};

export const DEVELOPMENT_EGRESS: EgressPolicy = {
  ...STRICT_EGRESS,
  allow: ['127.0.0.0/8', '::1/128'],
  allowHttpToLoopback: true,
};

export interface CompiledPolicy {
  readonly settings: EgressPolicy;
  /** Whether this address may be connected to. */
  permits(address: string): boolean;
  /** The operator opened something besides loopback, so internal names may be meant. */
  readonly opensInternal: boolean;
}

export function isLoopback(address: string): boolean {
  return isIP(address) !== 0 && ipaddr.parse(address).range() === 'loopback';
}

function parseRange(text: string): Range {
  const trimmed = text.trim();
  try {
    if (trimmed.includes('/')) return ipaddr.parseCIDR(trimmed);
    const address = ipaddr.parse(trimmed);
    return [address, address.kind() === 'ipv4' ? 32 : 128];
  } catch (cause) {
    throw new RangeError(`"${text}" is not an address range (CIDR)`, { cause });
  }
}

const matches = (address: Address, ranges: readonly Range[]): boolean =>
  ranges.some(([base, bits]) => address.kind() === base.kind() && address.match(base as never, bits));

const compiled = new WeakMap<EgressPolicy, CompiledPolicy>();

/** Throws on a CIDR that is none, naming it. */
export function compilePolicy(settings: EgressPolicy): CompiledPolicy {
  const known = compiled.get(settings);
  if (known !== undefined) return known;
  const allow = settings.allow.map(parseRange);
  const deny = settings.deny.map(parseRange);

  const permits = (address: Address): boolean => {
    const targets = nat64Targets(address);
    // What a list says about an IPv4 address holds for every way to write it.
    const same: Address[] = targets === null ? [address] : [address, ...targets];
    if (address.kind() === 'ipv6' && (address as ipaddr.IPv6).isIPv4MappedAddress())
      same.push((address as ipaddr.IPv6).toIPv4Address());
    if (same.some((one) => matches(one, deny))) return false;
    if (matches(address, allow)) return true;
    if (targets !== null) return targets.every(permits);
    return !isReserved(address);
  };

  const policy: CompiledPolicy = {
    settings,
    // A zone (`fe80::1%eth0`) or anything else that is no plain address is not for us to guess.
    permits: (address) => isIP(address) !== 0 && !address.includes('%') && permits(ipaddr.parse(address)),
    opensInternal: allow.some(([base]) => base.range() !== 'loopback'),
  };
  compiled.set(settings, policy);
  return policy;
}
