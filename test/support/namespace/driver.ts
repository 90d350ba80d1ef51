/**
 * Runs inside a network namespace of its own, where every address is this machine: whatever `posthorn serve` connects to
 * ends at a listener here, which records the address. Prints what was reached, and the result of every delivery, as JSON.
 */
import { execFileSync, spawn } from 'node:child_process';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { type DnsRecord, startDnsServer } from '../dns-server.ts';

const [main = ''] = process.argv.slice(2);
const PORT = 8787;
const KEY = 'phk_of-the-namespace-test';

for (const command of [
  'link set lo up',
  'route add local 0.0.0.0/0 dev lo',
  '-6 route add local ::/0 dev lo',
])
  execFileSync('ip', command.split(' '));

export interface Report {
  /** `address port` of every connection. */
  readonly reached: string[];
  /** By the name of the endpoint: the status of the delivery, and the class of its error. */
  readonly results: Record<string, string>;
  /** By URL: the answer to an attempt to register it. */
  readonly registrations: Record<string, string>;
}

const reached = new Set<string>();
const record = (socket: Socket): void => {
  reached.add(`${String(socket.localAddress).replace('::ffff:', '')} ${socket.localPort}`);
};
const http = createHttpServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url!, 'http://x');
  request.resume().on('end', () => {
    const to = searchParams.get('to');
    if (to !== null) response.writeHead(307, { location: to }).end();
    else response.end(pathname === '/token' ? '{"access_token":"x"}' : '');
  });
});
http.on('connection', record);
await new Promise<void>((resolve) => http.listen(80, '::', resolve));
for (const port of [22, 443, 5432, 6379, 8080]) {
  const server = createServer((socket) => {
    record(socket);
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(port, '::', resolve));
}

const PUBLIC = '93.184.216.34';
const names: Record<string, DnsRecord> = {
  'public.example': [PUBLIC],
  'public6.example': ['2606:4700::1111'],
  'private.example': ['10.0.0.1'],
  'loopback.example': ['127.0.0.1'],
  'metadata.example': ['169.254.169.254'],
  'unspecified.example': ['0.0.0.0'],
  'shared.example': ['100.64.0.1'],
  'unique-local.example': ['fd00::1'],
  'link-local.example': ['fe80::1'],
  'mapped.example': ['::ffff:10.0.0.1'],
  'nat64.example': ['64:ff9b::a00:1'],
  'mixed.example': [PUBLIC, '10.0.0.2'],
  'alias.example': { alias: 'private.example', addresses: ['10.0.0.3'] },
  'rebinding.example': (n) => (n === 0 ? [PUBLIC] : ['127.0.0.1']),
};
await startDnsServer(names, { host: '0.0.0.0', port: 53 });

const redirecting = (to: string): string => `http://public.example/?to=${encodeURIComponent(to)}`;
const oauth = (host: string) => ({
  type: 'oauth2',
  token_url: `http://${host}/token`,
  client_id: 'a',
  client_secret: 'b',
});
const endpoints: Record<string, object> = {
  ...Object.fromEntries(Object.keys(names).map((name) => [name, { url: `http://${name}/` }])),
  'another port': { url: 'http://private.example:5432/' },
  'https to a private name': { url: 'https://private.example/' },
  'redirect to metadata': { url: redirecting('http://169.254.169.254/latest'), follow_redirects: 3 },
  'redirect to a private name': { url: redirecting('http://private.example/'), follow_redirects: 3 },
  'redirect to a private port': { url: redirecting('http://127.0.0.1:6379/'), follow_redirects: 3 },
  'redirect to a public name': { url: redirecting('http://public6.example/'), follow_redirects: 3 },
  'token of a private name': { url: 'http://public.example/', auth: oauth('private.example') },
  'token of a public name': { url: 'http://public.example/', auth: oauth('public.example') },
};

const child = spawn(process.execPath, [main, 'serve'], {
  env: {
    ...process.env,
    PORT: String(PORT),
    POSTHORN_ADMIN_KEY: KEY,
    POSTHORN_EGRESS_HTTPS: 'optional',
    POSTHORN_LAME_DUCK_MS: '0',
  },
  stdio: ['ignore', 'ignore', 'inherit'],
});
const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));

interface Shown {
  readonly id: string;
  readonly code: string;
  readonly data: readonly { readonly status: string; readonly last_error: string | null }[];
}

async function api(method: string, path: string, body?: object): Promise<{ status: number; body: Shown }> {
  const answer = await fetch(`http://127.0.0.1:${PORT}${path}`, {
    method,
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as Shown };
}

async function until<T>(probe: () => Promise<T | null>): Promise<T> {
  for (let left = 600; left > 0; left -= 1) {
    const found = await probe().catch(() => null);
    if (found !== null) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('gave up after a minute');
}

try {
  await until(async () => ((await api('GET', '/readyz')).status === 200 ? true : null));
  const results: Record<string, string> = {};
  for (const [name, settings] of Object.entries(endpoints)) {
    const created = await api('POST', '/v1/endpoints', {
      tenant: name.replaceAll(' ', '-'),
      retry: { schedule: [0] },
      ...settings,
    });
    if (created.status !== 201) throw new Error(`${name}: ${JSON.stringify(created)}`);
  }
  // Twice: a name may resolve to another address the second time, and the connection of the first may be kept.
  for (let round = 1; round <= 2; round += 1)
    for (const name of Object.keys(endpoints)) {
      const tenant = name.replaceAll(' ', '-');
      const event = await api('POST', '/v1/events', { tenant, type: 'a.b', data: round });
      const ending = await until(async () => {
        const { body } = await api('GET', `/v1/events/${event.body.id}/deliveries`);
        const [delivery] = body.data;
        return delivery !== undefined && ['delivered', 'dead'].includes(delivery.status) ? delivery : null;
      });
      results[name] = `${ending.status} ${ending.last_error ?? ''}`.trim();
    }
  const registrations: Record<string, string> = {};
  for (const url of ['http://10.0.0.1/', 'http://169.254.169.254/', 'http://[::1]/', 'http://0x7f.1/'])
    registrations[url] = (await api('POST', '/v1/endpoints', { url })).body.code;
  for (const url of ['http://private.example/', 'http://metadata.example/'])
    registrations[url] = (await api('POST', '/v1/endpoints', { url, challenge: 'echo' })).body.code;
  const report: Report = { reached: [...reached].sort(), results, registrations };
  process.stdout.write(`${JSON.stringify(report)}\n`);
} finally {
  child.kill('SIGTERM');
  await ended;
}
process.exit(0);
