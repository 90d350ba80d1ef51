/** Which addresses may be called. The deny list precedes the allow list, which precedes the built-in ranges. */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { type Address, isReserved, nat64Targets, type Range } from './ranges.ts';

export interface EgressPolicy {
  /** CIDRs (or single addresses) that are allowed despite the built-in ranges. */
  readonly allow: readonly string[];
  /** CIDRs that are always forbidden. */
  readonly deny: readonly string[];
  readonly requireHttps: boolean;
  /** For development: allows `http://` to loopback, if loopback itself is allowed. */
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
  /** True if connections to this address are allowed. */
  permits(address: string): boolean;
  /** True if the operator allows any range besides loopback: URLs may then use internal names. */
  readonly allowsInternalNames: boolean;
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

/** Throws a `RangeError` that names an invalid CIDR. */
export function compilePolicy(settings: EgressPolicy): CompiledPolicy {
  const known = compiled.get(settings);
  if (known !== undefined) return known;
  const allow = settings.allow.map(parseRange);
  const deny = settings.deny.map(parseRange);

  const permits = (address: Address): boolean => {
    const targets = nat64Targets(address);
    // A rule for an IPv4 address also applies to its IPv6 forms.
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
    // Anything but a plain address is forbidden, for example one with a zone (`fe80::1%eth0`).
    permits: (address) => isIP(address) !== 0 && !address.includes('%') && permits(ipaddr.parse(address)),
    allowsInternalNames: allow.some(([base]) => base.range() !== 'loopback'),
  };
  compiled.set(settings, policy);
  return policy;
}
