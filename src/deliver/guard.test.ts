/** EGR-1, EGR-4: names, with a real name server on loopback: the address that is connected to decides. */
import type { TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { anEndpoint, attempt } from '../../test/support/attempts.ts';
import { redirect } from '../../test/support/behaviours.ts';
import { certificates } from '../../test/support/certificates.ts';
import { type DnsServer, startDnsServer } from '../../test/support/dns-server.ts';
import { type Receiver, startReceiver } from '../../test/support/receiver.ts';
import {
  createDeliverer,
  createDnsLookup,
  type Deliverer,
  type DelivererOptions,
  type EgressPolicy,
  STRICT_EGRESS,
} from './index.ts';

const forbidden = [
  '127.0.0.1',
  '127.8.8.8',
  '0.0.0.0',
  '10.0.0.1',
  '100.64.0.1',
  '100.100.100.200',
  '169.254.169.254',
  '172.16.0.1',
  '192.0.0.192',
  '192.168.1.1',
  '198.18.0.1',
  '203.0.113.9',
  '224.0.0.1',
  '255.255.255.255',
  '::1',
  '::',
  'fe80::1',
  'fc00::1',
  'fd00:ec2::254',
  'ff02::1',
  '::ffff:127.0.0.1',
  '::ffff:8.8.8.8',
  '::127.0.0.1',
  '2002:7f00:1::1',
  '2001::1',
  '64:ff9b::7f00:1',
  '64:ff9b:1::a9fe:a9fe',
  '2001:db8::1',
];

/** This one loopback address is allowed and stands for the public Internet. Other loopback addresses are forbidden. */
const PUBLIC = '127.0.0.1';
const INSIDE = '127.0.0.2';
const egress: EgressPolicy = { ...STRICT_EGRESS, allow: [`${PUBLIC}/32`], requireHttps: false };

let dns: DnsServer;
let receiver: Receiver;
let inside: Receiver;
const open: Deliverer[] = [];

function deliverer(overrides: Partial<DelivererOptions> = {}): Deliverer {
  const made = createDeliverer({
    egress,
    userAgent: 'Posthorn/test',
    publicUrl: 'https://posthorn.test',
    lookup: createDnsLookup({ servers: [dns.address], timeoutMs: 400, tries: 1 }),
    connectTimeoutMs: 1000,
    ...overrides,
  });
  open.push(made);
  return made;
}

beforeAll(async () => {
  dns = await startDnsServer();
  receiver = await startReceiver({ host: PUBLIC });
  inside = await startReceiver({ host: INSIDE, port: receiver.port });
});
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});
afterAll(async () => {
  await receiver.close();
  await inside.close();
  await dns.close();
});

describe('a name that resolves to', () => {
  it.each(forbidden)('%s is refused', async (address) => {
    dns.set('forbidden.test', [address]);
    const outcome = await attempt(
      deliverer({ egress: { ...egress, allow: [] } }),
      anEndpoint('http://forbidden.test/'),
    );
    expect(outcome.error).toEqual({ class: 'egress_forbidden', message: 'The destination is not allowed.' });
    expect(JSON.stringify(outcome)).not.toContain(address);
  });

  it.each([
    ['a public and a private address', [PUBLIC, '10.0.0.1']],
    ['a public and a metadata address', ['169.254.169.254', PUBLIC]],
    ['a public IPv4 and a private IPv6 address', [PUBLIC, 'fd00::1']],
    ['many public addresses and one of loopback', [PUBLIC, PUBLIC, PUBLIC, INSIDE]],
  ])('%s is refused as a whole', async (_what, addresses) => {
    dns.set('mixed.test', addresses);
    const before = receiver.connections;
    const outcome = await attempt(deliverer(), anEndpoint(`http://mixed.test:${receiver.port}/`));
    expect(outcome.error?.class).toBe('egress_forbidden');
    expect(receiver.connections).toBe(before);
  });
});

it('with `hidesForbiddenNames` a tenant cannot tell an internal name from one that does not exist', async () => {
  dns.set('internal.test', ['10.0.0.1']);
  dns.set('broken.test', 'servfail');
  const hiding = deliverer({ hidesForbiddenNames: true });
  const seen = [];
  for (const name of ['internal.test', 'missing.test', 'broken.test']) {
    const { error, statusCode, timing } = await attempt(hiding, anEndpoint(`http://${name}/`));
    const measured = Object.entries(timing).flatMap(([stage, ms]) => (ms === null ? [] : [stage]));
    seen.push({ error, statusCode, measured });
  }
  const expected = {
    error: { class: 'dns_failed', message: 'The host name could not be resolved.' },
    statusCode: null,
    measured: ['dnsMs'],
  };
  expect(seen).toEqual([expected, expected, expected]);
  // An address in the URL reveals nothing.
  const literal = await attempt(hiding, anEndpoint('http://10.0.0.1/'));
  expect(literal.error?.class).toBe('egress_forbidden');
});

describe('a name that is an alias of a name for', () => {
  it.each([
    ['an internal address', { alias: 'db.internal', addresses: [INSIDE] }],
    ['the metadata service', { alias: 'metadata.google.internal', addresses: ['169.254.169.254'] }],
    ['localhost', { alias: 'localhost', addresses: ['127.0.0.2', '::1'] }],
    ['a public and a private address', { alias: 'mixed.test', addresses: [PUBLIC, '10.0.0.1'] }],
    ['a public IPv4 and a private IPv6 address', { alias: 'v6.test', addresses: [PUBLIC, 'fd00::1'] }],
  ])('%s is refused', async (_what, answer) => {
    dns.set('alias.test', answer);
    const outcome = await attempt(deliverer(), anEndpoint(`http://alias.test:${receiver.port}/`));
    expect(outcome.error?.class).toBe('egress_forbidden');
    expect(JSON.stringify(outcome)).not.toContain(answer.alias);
    expect(inside.requests).toHaveLength(0);
  });

  it('a public address is called', async () => {
    dns.set('alias.test', { alias: 'cdn.test', addresses: [PUBLIC] });
    const outcome = await attempt(deliverer(), anEndpoint(`http://alias.test:${receiver.port}/`));
    expect(outcome.error).toBeNull();
  });
});

it('a name is allowed only if its IPv4 and its IPv6 addresses are', async () => {
  const answers: Record<string, string> = { A: PUBLIC, AAAA: '::1' };
  dns.set('split.test', (_n, type) => [answers[type]!]);
  const outcome = await attempt(deliverer(), anEndpoint(`http://split.test:${receiver.port}/`));
  expect(outcome.error?.class).toBe('egress_forbidden');
});

describe('a redirect to', () => {
  const followed = (location: string, overrides: Partial<DelivererOptions> = {}) => {
    dns.set('redirecting.test', [PUBLIC]);
    dns.set('inside.test', [INSIDE]);
    receiver.answer(redirect(location));
    const endpoint = anEndpoint(`http://redirecting.test:${receiver.port}/`, { followRedirects: 3 });
    return attempt(deliverer(overrides), endpoint);
  };
  const port = () => receiver.port;

  it.each<[string, () => string]>([
    ['an address', () => `http://127.0.0.2:${port()}/`],
    ['an address as one number', () => `http://2130706434:${port()}/`],
    ['an address in hex', () => `http://0x7f000002:${port()}/`],
    ['an address in octal', () => `http://0177.0.0.2:${port()}/`],
    ['an address in short', () => `http://127.2:${port()}/`],
    ['an address with a dot', () => `http://127.0.0.2.:${port()}/`],
    ['an address in percent escapes', () => `http://%31%32%37.0.0.2:${port()}/`],
    ['an address without a scheme', () => `//127.0.0.2:${port()}/`],
    ['an address by backslashes', () => `\\\\127.0.0.2:${port()}/`],
    ['IPv4 in IPv6', () => `http://[::ffff:127.0.0.2]:${port()}/`],
    ['the unspecified address', () => `http://0.0.0.0:${port()}/`],
    ['a metadata service', () => 'http://169.254.169.254/latest/meta-data/'],
    ['an internal name', () => `http://db.internal:${port()}/`],
    ['a name without a dot', () => `http://inside:${port()}/`],
    ['a name that resolves inside', () => `http://inside.test:${port()}/`],
    ['credentials', () => `http://user:password@127.0.0.1:${port()}/`],
    ['another protocol', () => 'file:///etc/passwd'],
    ['yet another protocol', () => `gopher://127.0.0.2:${port()}/_x`],
    ['two dots', () => `http://inside.test..:${port()}/`],
  ])('%s is refused', async (_what, location) => {
    const outcome = await followed(location());
    expect(outcome.error?.class).toBe('egress_forbidden');
    expect(inside.requests).toHaveLength(0);
    receiver.answer({});
  });

  it('a port that the policy does not allow is refused', async () => {
    const allowedPorts = [receiver.port];
    const outcome = await followed(`http://redirecting.test:${inside.port + 1}/`, {
      egress: { ...egress, allowedPorts },
    });
    expect(outcome.error?.class).toBe('egress_forbidden');
    receiver.answer({});
  });

  it('another origin carries no custom headers, whatever their names', async () => {
    dns.set('other.test', [PUBLIC]);
    dns.set('redirecting.test', [PUBLIC]);
    receiver.answer((request) =>
      request.headers.host?.startsWith('other') ? {} : redirect(`http://other.test:${receiver.port}/`),
    );
    const headers = {
      authorization: 'Bearer x',
      'X-Acme-Token': 'x',
      'X-Shared-Secret': 'x',
      'x-plain': 'y',
    };
    const endpoint = anEndpoint(`http://redirecting.test:${receiver.port}/`, { followRedirects: 1, headers });
    const outcome = await attempt(deliverer(), endpoint);
    expect(outcome.error).toBeNull();
    const last = receiver.requests.at(-1)!.headers;
    for (const name of ['x-plain', 'authorization', 'x-acme-token', 'x-shared-secret']) {
      expect(last).not.toHaveProperty(name);
      expect(receiver.requests.at(-2)!.headers).toHaveProperty(name);
    }
    receiver.answer({});
  });
});

it('a public name is connected to, and sent as the host', async () => {
  dns.set('good.test', [PUBLIC]);
  const outcome = await attempt(deliverer(), anEndpoint(`http://good.test:${receiver.port}/hook`));
  expect(outcome.error).toBeNull();
  expect(receiver.requests.at(-1)?.headers.host).toBe(`good.test:${receiver.port}`);
  expect(outcome.timing.dnsMs).toBeGreaterThan(0);
  expect(outcome.timing.connectMs).toBeGreaterThan(0);
  expect(outcome.timing.tlsMs).toBeNull();
});

it('the second address is tried if the first does not answer', async () => {
  const lonely = await startReceiver({ host: INSIDE });
  const lookup: DelivererOptions['lookup'] = (_name, done) => done(null, [PUBLIC, INSIDE]);
  const both = deliverer({ lookup, egress: { ...egress, allow: ['127.0.0.0/8'] } });
  const outcome = await attempt(both, anEndpoint(`http://two.test:${lonely.port}/`));
  expect(outcome.error).toBeNull();
  await lonely.close();
});

describe('a name that rebinds', () => {
  it('is resolved once per connection: only the vetted address is connected to', async () => {
    dns.set('rebind.test', (n) => [n === 0 ? PUBLIC : INSIDE]);
    const before = dns.queries.length;
    const outcome = await attempt(deliverer(), anEndpoint(`http://rebind.test:${receiver.port}/`));
    expect(outcome.error).toBeNull();
    expect(dns.queries.length - before).toBe(2); // A and AAAA
    expect(inside.requests).toHaveLength(0);
  });

  it('is vetted again for the next connection', async () => {
    dns.set('rebind2.test', (n) => [n === 0 ? PUBLIC : INSIDE]);
    receiver.answer({ headers: { connection: 'close' } });
    const one = deliverer();
    const endpoint = anEndpoint(`http://rebind2.test:${receiver.port}/`);
    expect((await attempt(one, endpoint)).error).toBeNull();
    expect((await attempt(one, endpoint)).error?.class).toBe('egress_forbidden');
    expect(inside.requests).toHaveLength(0);
    receiver.answer({});
  });

  it('is vetted at a redirect as well', async () => {
    dns.set('redirecting.test', [PUBLIC]);
    dns.set('inside.test', [INSIDE]);
    receiver.answer(redirect(`http://inside.test:${receiver.port}/`));
    const endpoint = anEndpoint(`http://redirecting.test:${receiver.port}/`, { followRedirects: 2 });
    const outcome = await attempt(deliverer(), endpoint);
    expect(outcome.error?.class).toBe('egress_forbidden');
    expect(outcome.url).toBe(`http://inside.test:${receiver.port}/`);
    expect(inside.requests).toHaveLength(0);
    receiver.answer({});
  });
});

describe('name resolution', () => {
  it.each([
    ['there is no such name', 'nxdomain'],
    ['its zone is broken', 'servfail'],
    ['the name has no addresses', []],
    ['the name server is silent', 'silence'],
  ] as const)('fails if %s', async (_what, answer) => {
    dns.set('gone.test', answer);
    const outcome = await attempt(deliverer(), anEndpoint('http://gone.test/', { timeoutMs: 20_000 }));
    expect(outcome.error?.class).toBe('dns_failed');
    expect(outcome.durationMs).toBeLessThan(10_000);
  });

  it('is not delayed by a name server that answers for IPv4 only', async () => {
    dns.set('v4.test', (_n, type) => (type === 'A' ? [PUBLIC] : 'silence'));
    const lookup = createDnsLookup({ servers: [dns.address], timeoutMs: 20_000 });
    const endpoint = anEndpoint(`http://v4.test:${receiver.port}/`, { timeoutMs: 30_000 });
    const outcome = await attempt(deliverer({ lookup, connectTimeoutMs: 30_000 }), endpoint);
    expect(outcome.error).toBeNull();
    expect(outcome.durationMs).toBeLessThan(10_000);
  });

  it('is ended by the connect timeout if the lookup never ends', async () => {
    const endpoint = anEndpoint('http://never.test/', { timeoutMs: 20_000 });
    const outcome = await attempt(deliverer({ lookup: () => {} }), endpoint);
    expect(outcome.error?.class).toBe('dns_failed');
    expect(outcome.durationMs).toBeLessThan(10_000);
  });

  it('fails like any other lookup if the lookup throws', async () => {
    const lookup = (): void => {
      throw new Error('secret 10.1.2.3');
    };
    const outcome = await attempt(deliverer({ lookup }), anEndpoint('http://throws.test/'));
    expect(outcome.error).toEqual({ class: 'dns_failed', message: 'The host name could not be resolved.' });
  });
});

describe('TLS with a pinned address', () => {
  it('requests and verifies the name of the URL, and resumes the last session', async () => {
    const secure = await startReceiver({ tls: certificates.valid, host: PUBLIC });
    dns.set('receiver.test', [PUBLIC]);
    dns.set('impostor.test', [PUBLIC]);
    const one = deliverer({ ca: certificates.authority });
    const seen: (string | boolean)[] = [];
    secure.answer((_request, { socket }) => {
      seen.push((socket as TLSSocket).servername as string, (socket as TLSSocket).isSessionReused());
      return { headers: { connection: 'close' } };
    });
    const good = await attempt(one, anEndpoint(`https://receiver.test:${secure.port}/`));
    expect(good.error).toBeNull();
    expect(good.timing.tlsMs).toBeGreaterThan(0);
    await secure.waitForNoSockets();
    expect((await attempt(one, anEndpoint(`https://receiver.test:${secure.port}/`))).error).toBeNull();
    expect(seen).toEqual(['receiver.test', false, 'receiver.test', true]);
    const bad = await attempt(one, anEndpoint(`https://impostor.test:${secure.port}/`));
    expect(bad.error?.class).toBe('tls_name_mismatch');
    await secure.close();
  });
});

it('localhost is loopback without DNS, in the address families that are allowed', async () => {
  const before = dns.queries.length;
  const outcome = await attempt(deliverer(), anEndpoint(`http://localhost:${receiver.port}/`));
  expect(outcome.error).toBeNull();
  expect(dns.queries.length).toBe(before);
});
