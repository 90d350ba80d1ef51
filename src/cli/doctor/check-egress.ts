/** Checks of egress: DNS names of receivers, proxy, and egress guard. */
import { Resolver } from 'node:dns/promises';
import { connect, isIP } from 'node:net';
import type { Config } from '../../config/index.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

/** Looked up if no endpoint has a host name. */
const DEFAULT_NAME = 'example.com';
const MAX_NAMES = 5;
const CONNECT_TIMEOUT_MS = 3_000;

/** Resolves the host names of receivers as the deliver stage does: through the name servers, without /etc/hosts. */
export async function checkNames(urls: readonly string[]): Promise<Finding> {
  const check = 'DNS';
  const hosts = [...new Set(urls.map((url) => new URL(url).hostname))].filter(
    (host) => isIP(host.replace(/^\[|\]$/g, '')) === 0,
  );
  const names = hosts.length > 0 ? hosts.slice(0, MAX_NAMES) : [DEFAULT_NAME];
  const results = await Promise.all(names.map(resolves));
  const failed = names.filter((_, index) => !results[index]);
  const what = hosts.length > 0 ? 'names of receivers' : DEFAULT_NAME;
  if (failed.length === 0)
    return ok(check, hosts.length > 0 ? `${names.length} ${what} resolve` : `${what} resolves`);
  const todo = 'Check the name servers of this machine (/etc/resolv.conf). Posthorn does not use /etc/hosts.';
  const detail = `${failed.join(', ')} ${failed.length === 1 ? 'does' : 'do'} not resolve.`;
  // If one name fails, its owner may have made a mistake. If all of several names fail, this machine has a problem.
  return failed.length === names.length && names.length > 1
    ? problem(check, detail, todo)
    : warning(check, detail, todo);
}

async function resolves(name: string): Promise<boolean> {
  const resolver = new Resolver({ timeout: 1_500, tries: 1 });
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  return answers.some((answer) => answer.status === 'fulfilled' && answer.value.length > 0);
}

export async function checkProxy(proxyUrl: string | null): Promise<Finding | null> {
  if (proxyUrl === null) return null;
  const { hostname, port } = new URL(proxyUrl);
  const failure = await connectFailure(hostname, port === '' ? 80 : Number(port));
  const where = `${hostname}:${port === '' ? 80 : port}`;
  return failure === null
    ? ok('Egress proxy', `${where} accepts connections`)
    : problem(
        'Egress proxy',
        `${where} cannot be reached (${failure}): no delivery can be sent.`,
        'Start the proxy, or correct POSTHORN_EGRESS_PROXY.',
      );
}

/** Returns why a connection fails, or null if it succeeds. */
function connectFailure(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (failure: string | null): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(failure);
    };
    const timer = setTimeout(() => end('no answer'), CONNECT_TIMEOUT_MS);
    socket.once('connect', () => end(null));
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
  });
}

/** In production the guard should have no exceptions: they let customers reach internal addresses. */
export function judgeGuard({
  mode,
  egressAllow,
  egressHttps,
}: Pick<Config, 'mode' | 'egressAllow' | 'egressHttps'>): Finding {
  const check = 'Egress guard';
  if (mode === 'dev') return ok(check, 'receivers on this machine are allowed, as always in `dev`');
  const openings = [
    ...(egressAllow.length > 0 ? [`${egressAllow.join(', ')} may be called`] : []),
    ...(egressHttps === 'required' ? [] : [`http is allowed (${egressHttps})`]),
  ];
  if (openings.length === 0) return ok(check, 'private addresses are blocked, https is required');
  return warning(
    check,
    `${openings.join('; ')}.`,
    'Fine if all receivers are your own. If customers register URLs, restrict POSTHORN_EGRESS_ALLOW and POSTHORN_EGRESS_HTTPS.',
  );
}
