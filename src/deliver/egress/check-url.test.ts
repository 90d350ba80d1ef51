import { describe, expect, it } from 'vitest';
import { checkUrl, MAX_URL_LENGTH } from './check-url.ts';
import { DEVELOPMENT_EGRESS, type EgressPolicy, STRICT_EGRESS } from './policy.ts';

const policy = (overrides: Partial<EgressPolicy>): EgressPolicy => ({ ...STRICT_EGRESS, ...overrides });

/** EGR-1: hosts that are forbidden in any notation. The URL parser normalizes most of these to addresses. */
const forbiddenHosts = {
  'loopback in every notation': [
    '127.0.0.1',
    '127.1',
    '127.0.1',
    '127.255.255.254',
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '0x7f.0x0.0x0.0x1',
    '017700000001',
    '0177.0.0.1',
    '0177.0x0.0.1',
    '127.0.0.1.',
    '%31%32%37.0.0.1',
    '１２７.0.0.1',
    '127。0。0。1',
    '⑫⑦.0.0.1',
    '[::1]',
    '[0:0:0:0:0:0:0:1]',
    '[0000:0000:0000:0000:0000:0000:0000:0001]',
    'localhost',
    'LOCALHOST',
    'localhost.',
    'api.localhost',
    'loc%61lhost',
    'ｌｏｃａｌｈｏｓｔ',
    'ⓛocalhost',
    'local\u00adhost',
    'local\u200bhost',
    'localhost\u3002',
    'x.localhost.',
    '①②⑦.⓪.⓪.①',
    '127.0\t.0.1',
    '0x7f.1.',
    '[0:0:0:0:0:0:127.0.0.1]',
    '[::0.0.0.1]',
    '/127.0.0.1',
    '\\127.0.0.1',
    'ip6-localhost',
    'localhost.localdomain',
  ],
  'the unspecified address and "this network"': ['0.0.0.0', '0', '0x0', '0.1.2.3', '[::]', '[0::0]'],
  'private networks': [
    '10.0.0.1',
    '10.255.255.255',
    '0xa000001',
    '012.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '2886729729',
    '192.168.0.1',
    '192.168.1',
    '3232235777',
    '0xc0a80101',
    '[fc00::1]',
    '[fd12:3456:789a::1]',
    '[fec0::1]',
  ],
  'link-local and metadata services': [
    '169.254.169.254',
    '2852039166',
    '0xa9fea9fe',
    '0251.0376.0251.0376',
    '169.254.43518',
    '169.254.170.2',
    '100.100.100.200',
    '192.0.0.192',
    '168.63.129.16',
    '[fe80::1]',
    '[febf::1]',
    '[fd00:ec2::254]',
    '[fd20:ce::254]',
    'metadata.google.internal',
    'METADATA.google.internal.',
    'metadata',
    'instance-data',
  ],
  'shared, reserved, documentation, benchmarking, multicast': [
    '100.64.0.1',
    '100.127.255.255',
    '192.0.0.1',
    '192.0.2.1',
    '192.88.99.1',
    '198.18.0.1',
    '198.19.255.255',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
    '255.255.255.255',
    '4294967295',
    '[ff02::1]',
    '[2001:db8::1]',
    '[3fff::1]',
    '[100::1]',
    '[2001:2::1]',
    '[2001:10::1]',
    '[2001:20::1]',
    '[5f00::1]',
    '[4000::1]',
  ],
  'IPv4 inside IPv6': [
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::ffff:10.0.0.1]',
    '[::ffff:169.254.169.254]',
    '[0:0:0:0:0:ffff:a9fe:a9fe]',
    '[::127.0.0.1]',
    '[::10.0.0.1]',
    '[::ffff:0:127.0.0.1]',
    '[2002:7f00:1::]',
    '[2002:a9fe:a9fe::1]',
    '[2002:808:808::1]',
    '[2001:0:4136:e378:8000:63bf:3fff:fdd2]',
    '[2001::1]',
    '[64:ff9b::127.0.0.1]',
    '[64:ff9b::a9fe:a9fe]',
    '[64:ff9b::10.0.0.1]',
    '[64:ff9b:1::10.0.0.1]',
    '[64:ff9b:1:a9fe:a9:fe00::]',
    '[2600::5efe:10.0.0.1]',
    '[2600::200:5efe:8.8.8.8]',
  ],
  'names of internal networks': [
    'router',
    'kubernetes',
    'printer.local',
    'db.internal',
    'host.docker.internal',
    'server.lan',
    'server.localdomain',
    'nas.home.arpa',
    'wiki.corp',
    'wiki.intranet',
    'db.ｉｎｔｅｒｎａｌ',
    'db。internal',
    'kubernetes.default.svc',
    'vault.service.consul',
    'instance-data.ec2.internal',
    'x.private',
    'x.onion',
    'x.invalid',
    '1.0.0.127.in-addr.arpa',
    'xn--lcalhost-6ij',
  ],
  'names before an @, which are not the host': [
    'example.com@127.0.0.1',
    'example.com:443@10.0.0.1',
    'example.com%2f@127.0.0.1',
    'example.com%23@169.254.169.254',
    '%20@example.com',
    '127.0.0.1:80@example.com',
  ],
};

describe.each(Object.entries(forbiddenHosts))('EGR-1 %s', (_group, hosts) => {
  it.each(hosts)('https://%s/ is forbidden', (host) => {
    expect(checkUrl(`https://${host}/`, STRICT_EGRESS)).toMatchObject({ ok: false, code: 'url_forbidden' });
    expect(checkUrl(`https://${host}:8443/path`, STRICT_EGRESS)).toMatchObject({ ok: false });
  });
});

it('the table of forbidden hosts is complete', () => {
  expect(Object.values(forbiddenHosts).flat().length).toBeGreaterThanOrEqual(80);
});

describe('allowed URLs', () => {
  it.each([
    ['https://example.com', 'https://example.com/'],
    ['https://EXAMPLE.com:443/a/../b?c=d#fragment', 'https://example.com/b?c=d'],
    ['https://example.com.', 'https://example.com./'],
    ['https://bücher.example/', 'https://xn--bcher-kva.example/'],
    ['https://8.8.8.8/hook', 'https://8.8.8.8/hook'],
    ['https://134744072/', 'https://8.8.8.8/'],
    ['https://[2606:4700::1111]:8443/', 'https://[2606:4700::1111]:8443/'],
    ['https://[64:ff9b::8.8.8.8]/', 'https://[64:ff9b::808:808]/'],
    ['https://172.32.0.1/', 'https://172.32.0.1/'],
    ['https://100.128.0.1/', 'https://100.128.0.1/'],
    ['https://localhost.example.com/', 'https://localhost.example.com/'],
    [' https://example.com/ ', 'https://example.com/'],
    ['https://@example.com/', 'https://example.com/'],
    ['https://example.com#@127.0.0.1/', 'https://example.com/'],
    ['https://example.com\\@127.0.0.1/', 'https://example.com/@127.0.0.1/'],
    ['https://example.com/?url=http://127.0.0.1/', 'https://example.com/?url=http://127.0.0.1/'],
    // Public names with internal addresses are rejected when they are resolved.
    ['https://127.0.0.1.example.com/', 'https://127.0.0.1.example.com/'],
    ['https://xn--bcher-kva.example/', 'https://xn--bcher-kva.example/'],
  ])('%s', (given, normalized) => {
    expect(checkUrl(given, STRICT_EGRESS)).toEqual({ ok: true, url: normalized });
  });
});

describe('invalid URLs', () => {
  it.each([
    '',
    'example.com',
    '/hook',
    'https://',
    'https://exa mple.com/',
    'https://[::1/',
    'https://[fe80::1%25eth0]/',
    'https://[fe80::1%eth0]/',
    'https://[::ffff:127.0.0.1%25lo]/',
    'https://[::1%00]/',
    'https://[::1]./',
    'https://localhost../',
    'https://127.0.0.1../',
    'https://metadata.google.internal../',
    'https://a..example.com/',
    'https://.example.com/',
    'https://1.1.1.1.1/',
    'https://09.0.0.1/',
    'https://127.0.0.1:443:80/',
    `https://${'a'.repeat(64)}.com/`,
    `https://${'a.'.repeat(126)}com/`,
    'https://example.com\u0000.internal/',
    'https://exam%00ple.com/',
    'https://example.com%2f.internal/',
    'https://example.com%5b::1]/',
    'https://256.256.256.256/',
    'https://example.com:99999/',
    'https://example.com:0/',
    'ftp://example.com/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'gopher://127.0.0.1:6379/_x',
    `https://example.com/${'a'.repeat(MAX_URL_LENGTH)}`,
  ])('%s', (given) => {
    expect(checkUrl(given, STRICT_EGRESS)).toMatchObject({ ok: false, code: 'url_invalid' });
  });
});

describe('EGR-2 settings', () => {
  const ok = (url: string, settings: EgressPolicy): boolean => checkUrl(url, settings).ok;

  it.each([
    [STRICT_EGRESS, /begin with https:\/\/\.$/],
    [DEVELOPMENT_EGRESS, /begin with https:\/\/, or http:\/\/ if it leads to loopback/],
    [policy({ requireHttps: false }), /begin with https:\/\/ or http:\/\//],
  ])('the message for another scheme names the allowed ones', (settings, message) => {
    expect(checkUrl('ftp://127.0.0.1/', settings)).toMatchObject({
      ok: false,
      message: expect.stringMatching(message),
    });
  });

  it('plain http is rejected unless it is allowed', () => {
    expect(checkUrl('http://example.com/', STRICT_EGRESS)).toMatchObject({
      ok: false,
      code: 'url_forbidden',
    });
    expect(ok('http://example.com/', policy({ requireHttps: false }))).toBe(true);
  });

  it('credentials are rejected', () => {
    for (const url of [
      'https://user@example.com/',
      'https://user:pass@example.com/',
      'https://:pass@example.com/',
    ])
      expect(checkUrl(url, STRICT_EGRESS)).toMatchObject({ ok: false, code: 'url_forbidden' });
  });

  it('the text before the @ is not the host', () => {
    expect(ok('https://example.com@127.0.0.1/', STRICT_EGRESS)).toBe(false);
    expect(ok('https://127.0.0.1\\@example.com/', STRICT_EGRESS)).toBe(false);
  });

  it('development allows loopback, also by http, and nothing else', () => {
    for (const host of ['127.0.0.1', 'localhost', '[::1]', 'app.localhost', '127.9.9.9']) {
      expect(ok(`http://${host}:3000/`, DEVELOPMENT_EGRESS)).toBe(true);
      expect(ok(`https://${host}:3000/`, DEVELOPMENT_EGRESS)).toBe(true);
    }
    for (const host of [
      'example.com',
      '10.0.0.1',
      '169.254.169.254',
      '0.0.0.0',
      '[::ffff:127.0.0.1]',
      'router',
    ])
      expect(ok(`http://${host}/`, DEVELOPMENT_EGRESS)).toBe(false);
    expect(ok('https://10.0.0.1/', DEVELOPMENT_EGRESS)).toBe(false);
  });

  it('the allow list allows exactly its ranges', () => {
    const allowing = policy({ allow: ['10.1.0.0/16', 'fd00::/8', '192.168.7.7'] });
    for (const host of ['10.1.2.3', '[fd00::1]', '192.168.7.7', '[64:ff9b::10.1.2.3]'])
      expect(ok(`https://${host}/`, allowing)).toBe(true);
    for (const host of ['10.2.0.1', '192.168.7.8', '127.0.0.1', '[::ffff:10.2.0.1]'])
      expect(ok(`https://${host}/`, allowing)).toBe(false);
    expect(ok('https://db.internal/', allowing)).toBe(true);
    expect(ok('https://metadata.google.internal/', allowing)).toBe(false);
  });

  it('the deny list takes precedence over everything', () => {
    const denying = policy({ allow: ['10.0.0.0/8'], deny: ['10.9.0.0/16', '8.8.8.0/24', '2606:4700::/32'] });
    for (const host of ['10.9.1.1', '8.8.8.8', '[2606:4700::1]', '[64:ff9b::8.8.8.8]', '[::ffff:8.8.8.8]'])
      expect(ok(`https://${host}/`, denying)).toBe(false);
    expect(ok('https://10.8.1.1/', denying)).toBe(true);
  });

  it('ports may be limited', () => {
    const limited = policy({ allowedPorts: [443, 8443] });
    expect(ok('https://example.com/', limited)).toBe(true);
    expect(ok('https://example.com:8443/', limited)).toBe(true);
    expect(ok('https://example.com:6379/', limited)).toBe(false);
  });

  it('an invalid list entry is named', () => {
    expect(() => checkUrl('https://example.com/', policy({ allow: ['10.0.0.0/99'] }))).toThrow(
      /"10\.0\.0\.0\/99"/,
    );
    expect(() => checkUrl('https://example.com/', policy({ deny: ['nonsense'] }))).toThrow(/"nonsense"/);
  });
});
