/**
 * The guard as a property: for any URL and any answer of the name server, Posthorn connects exactly to the addresses that
 * it may call. The code under test is what every new connection goes through: `locateUrl` and the connector. The last
 * step, `connect` of a socket, is replaced by one that records the address.
 */
import { Socket } from 'node:net';
import fc, { type Arbitrary } from 'fast-check';
import { createConnector } from '../../src/deliver/connector.ts';
import { locateUrl } from '../../src/deliver/destination.ts';
import { compilePolicy, type EgressPolicy, STRICT_EGRESS } from '../../src/deliver/egress/policy.ts';
import { systemClock } from '../../src/domain/clock.ts';
import { mayCallV4, mayCallV6, type OracleRules, V4_EDGES, V6_EDGES } from './address-oracle.ts';

type Address = { readonly v4: number } | { readonly v6: bigint };

interface Case {
  readonly rules: OracleRules;
  readonly policy: EgressPolicy;
  readonly url: string;
  /** What the name server would answer. */
  readonly answers: readonly Address[];
  /** The addresses that the URL leads to. Null: not known, because it tries to deceive. */
  readonly leadsTo: readonly Address[] | null;
}

const dotted = (v4: number): string => [24, 16, 8, 0].map((shift) => (v4 >>> shift) & 255).join('.');
const groups = (v6: bigint): string[] =>
  Array.from({ length: 8 }, (_, index) => ((v6 >> BigInt(112 - 16 * index)) & 0xffffn).toString(16));
const textOf = (address: Address): string =>
  'v4' in address ? dotted(address.v4) : groups(address.v6).join(':');
const mayCall = (address: Address, rules: OracleRules): boolean =>
  'v4' in address ? mayCallV4(address.v4, rules) : mayCallV6(address.v6, rules);

const anyV4 = fc.oneof(fc.constantFrom(...V4_EDGES), fc.nat(0xffff_ffff), fc.constant(0x0808_0808));

/** IPv6 addresses at the edges of ranges, at random, and those that carry an IPv4 address. */
const anyV6: Arbitrary<bigint> = fc.oneof(
  fc.constantFrom(...V6_EDGES),
  fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }),
  fc.bigInt({ min: 0x2000n << 112n, max: (0x4000n << 112n) - 1n }),
  fc
    .tuple(
      anyV4,
      fc.constantFrom(
        (v4: bigint) => v4,
        (v4: bigint) => (0xffffn << 32n) | v4,
        (v4: bigint) => (0xffff_0000n << 32n) | v4,
        (v4: bigint) => (0x0064_ff9bn << 96n) | v4,
        (v4: bigint) => (0x0064_ff9b_0001n << 80n) | v4,
        (v4: bigint) => (0x0064_ff9b_0001n << 80n) | (v4 << 24n),
        (v4: bigint) => (0x2002n << 112n) | (v4 << 80n),
        (v4: bigint) => (0x2001_0000n << 96n) | (v4 ^ 0xffff_ffffn),
        (v4: bigint) => (0x2600n << 112n) | (0x5efen << 32n) | v4,
        (v4: bigint) => (0x2600n << 112n) | (0x0200_5efen << 32n) | v4,
      ),
    )
    .map(([v4, embed]) => embed(BigInt(v4))),
);
const anyAddress: Arbitrary<Address> = fc.oneof(
  anyV4.map((v4) => ({ v4 })),
  anyV6.map((v6) => ({ v6 })),
);

const octal = (value: number): string => (value === 0 ? '0' : `0${value.toString(8)}`);
const NUMBERS = [String, (n: number) => `0x${n.toString(16)}`, octal, (n: number) => `0X${n.toString(16)}`];

/** Notations of an IPv4 address that a URL parser understands. */
const v4Notation = (v4: number): Arbitrary<string> => {
  const [a, b, c, d] = [v4 >>> 24, (v4 >>> 16) & 255, (v4 >>> 8) & 255, v4 & 255];
  const parts = fc.constantFrom([v4], [a, v4 & 0xff_ffff], [a, b, v4 & 0xffff], [a, b, c, d]);
  return fc
    .tuple(parts, fc.array(fc.constantFrom(...NUMBERS), { minLength: 4, maxLength: 4 }), fc.boolean())
    .map(([numbers, formats, dot]) => numbers.map((n, i) => formats[i]!(n)).join('.') + (dot ? '.' : ''));
};

const v6Notation = (v6: bigint): Arbitrary<string> => {
  const full = groups(v6);
  const tail = dotted(Number(v6 & 0xffff_ffffn));
  const compressed = full.join(':').replace(/(?:^|:)0(?::0)+(?:$|:)/, '::');
  const forms = [
    full.join(':'),
    full.map((group) => group.padStart(4, '0')).join(':'),
    full.join(':').toUpperCase(),
    compressed,
    [...full.slice(0, 6), tail].join(':'),
  ];
  return fc.constantFrom(...forms).map((text) => `[${text}]`);
};
const hostOf = (address: Address): Arbitrary<string> =>
  'v4' in address ? v4Notation(address.v4) : v6Notation(address.v6);

const PUBLIC_NAMES = [
  'hooks.example.com',
  'a.example.',
  'xn--bcher-kva.example',
  'EXAMPLE.com',
  'internal.example',
];

/** Hosts that lead elsewhere than they seem to. */
const deceive = (host: string): Arbitrary<string> =>
  fc.constantFrom(
    `example.com@${host}`,
    `${host}@example.com`,
    `example.com\\@${host}`,
    `example.com#@${host}`,
    `example.com%2f@${host}`,
    `${host}%00.example.com`,
    `${host}.example.com`,
    [...host].map((c) => (/[0-9]/.test(c) ? String.fromCodePoint(0xff10 + Number(c)) : c)).join(''),
    [...host].map((c) => `%${c.charCodeAt(0).toString(16).padStart(2, '0')}`).join(''),
    host.replaceAll('.', '。'),
    `\t${host}\n`,
    `${host}..`,
    host.replace(']', '%25eth0]'),
    'localhost',
    'x.localhost.',
    'metadata.google.internal',
    'kubernetes.default.svc',
  );

const RULES: readonly { rules: OracleRules; policy: EgressPolicy }[] = [
  { rules: { allowV4: [], denyV4: [] }, policy: STRICT_EGRESS },
  {
    rules: { allowV4: [['10.0.0.0', '10.255.255.255']], denyV4: [['8.8.8.0', '8.8.8.255']] },
    policy: { ...STRICT_EGRESS, allow: ['10.0.0.0/8'], deny: ['8.8.8.0/24'] },
  },
  {
    rules: { allowV4: [['127.0.0.0', '127.255.255.255']], denyV4: [['127.0.0.7', '127.0.0.7']] },
    policy: { ...STRICT_EGRESS, allow: ['127.0.0.0/8'], deny: ['127.0.0.7'] },
  },
];

const suffix = fc.tuple(
  fc.constantFrom('', ':443', ':8443', ':65535'),
  fc.constantFrom('/', '/hook?a=b', '/@127.0.0.1/', '/?u=http://10.0.0.1/', '#@169.254.169.254'),
);

const anyCase: Arbitrary<Case> = fc
  .tuple(fc.constantFrom(...RULES), anyAddress, fc.array(anyAddress, { minLength: 1, maxLength: 4 }), suffix)
  .chain(([{ rules, policy }, literal, answers, [port, path]]) => {
    const make = (host: string, leadsTo: readonly Address[] | null): Case => ({
      rules,
      policy,
      url: `https://${host}${port}${path}`,
      answers,
      leadsTo,
    });
    return fc.oneof(
      hostOf(literal).map((host) => make(host, [literal])),
      fc.constantFrom(...PUBLIC_NAMES).map((host) => make(host, answers)),
      hostOf(literal)
        .chain(deceive)
        .map((host) => make(host, null)),
    );
  });

/** Returns the addresses that a connection to the URL would be opened to. */
function connectedTo({ policy, url, answers }: Case): Promise<string[]> {
  const located = locateUrl(url, policy, null);
  if (typeof located === 'string') return Promise.resolve([]);
  const tried: string[] = [];
  onConnect = (address) => tried.push(address);
  const connect = createConnector({
    policy: compilePolicy(policy),
    lookup: (_name, done) => done(null, answers.map(textOf)),
    clock: systemClock,
    connectTimeoutMs: 1000,
    proxy: null,
    ca: null,
    hidesForbiddenNames: false,
  });
  return new Promise((resolve) => connect(located.target, () => resolve(tried)));
}

let onConnect: (address: string) => void = () => {};
interface ConnectOptions {
  readonly host: string;
  readonly lookup?: (
    host: string,
    options: object,
    done: (error: null, found: { address: string }[]) => void,
  ) => void;
}

/** Sockets that record where they would connect to, and fail. */
function recordConnect(this: Socket, ...given: unknown[]): Socket {
  const first = given[0];
  const { host, lookup } = (Array.isArray(first) ? first[0] : first) as ConnectOptions;
  if (lookup === undefined) onConnect(host);
  else
    lookup(host, { all: true }, (_error, found) => {
      for (const { address } of found) onConnect(address);
    });
  process.nextTick(() => this.destroy(new Error('not connected')));
  return this;
}

function readV6(text: string): bigint {
  const [head = '', tail] = text.split('::');
  const parse = (part: string): string[] => (part === '' ? [] : part.split(':'));
  const front = parse(head);
  const back = tail === undefined ? [] : parse(tail);
  const zeros = Array.from({ length: 8 - front.length - back.length }, () => '0');
  return [...front, ...(tail === undefined ? [] : zeros), ...back].reduce(
    (sum, group) => (sum << 16n) | BigInt(`0x${group}`),
    0n,
  );
}
const readAddress = (text: string): Address =>
  text.includes(':')
    ? { v6: readV6(text) }
    : { v4: text.split('.').reduce((sum, part) => sum * 256 + Number(part), 0) };

/** Throws with the smallest URL for which the guard and the oracle disagree. */
export async function checkGuard(cases: number): Promise<{ connected: number; refused: number }> {
  const original = Socket.prototype.connect;
  let [connected, refused] = [0, 0];
  Socket.prototype.connect = recordConnect as typeof original;
  try {
    await fc.assert(
      fc.asyncProperty(anyCase, async (one) => {
        const reached = await connectedTo(one);
        if (reached.length > 0) connected += 1;
        else refused += 1;
        const forbidden = reached.filter((text) => !mayCall(readAddress(text), one.rules));
        if (forbidden.length > 0) throw new Error(`connects to ${forbidden.join()}`);
        if (one.leadsTo === null) return;
        const expected = one.leadsTo.every((address) => mayCall(address, one.rules)) ? one.leadsTo : [];
        const [is, should] = [reached.map(readAddress), expected].map((list) => list.map(textOf).join());
        if (is !== should) throw new Error(`connects to "${is}" instead of "${should}"`);
      }),
      { numRuns: cases },
    );
  } finally {
    Socket.prototype.connect = original;
  }
  return { connected, refused };
}
