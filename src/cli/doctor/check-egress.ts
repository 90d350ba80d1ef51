/** The way out to receivers: names, proxy, and what the guard lets through. */
import { Resolver } from 'node:dns/promises';
import { connect, isIP } from 'node:net';
import type { Config } from '../../config/index.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

/** Asked for when no endpoint has a name that could be. */
const SOME_NAME = 'example.com';
const NAMES = 5;
const PATIENCE_MS = 3_000;

/** The names of receivers, as the deliver stage resolves them: by the name servers alone, without /etc/hosts. */
export async function checkNames(urls: readonly string[]): Promise<Finding> {
  const check = 'DNS';
  const hosts = [...new Set(urls.map((url) => new URL(url).hostname))].filter(
    (host) => isIP(host.replace(/^\[|\]$/g, '')) === 0,
  );
  const names = hosts.length > 0 ? hosts.slice(0, NAMES) : [SOME_NAME];
  const results = await Promise.all(names.map(resolves));
  const failed = names.filter((_, index) => !results[index]);
  const what = hosts.length > 0 ? 'names of receivers' : SOME_NAME;
  if (failed.length === 0)
    return ok(check, hosts.length > 0 ? `${names.length} ${what} resolve` : `${what} resolves`);
  const todo =
    'Check the name servers of this machine (/etc/resolv.conf). Names that are only in /etc/hosts are not looked up.';
  const detail = `${failed.join(', ')} ${failed.length === 1 ? 'does' : 'do'} not resolve.`;
  // One name may be its owner's mistake; all of several are this machine's.
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
  const failure = await connects(hostname, port === '' ? 80 : Number(port));
  const where = `${hostname}:${port === '' ? 80 : port}`;
  return failure === null
    ? ok('Egress proxy', `${where} takes connections`)
    : problem(
        'Egress proxy',
        `${where} cannot be reached (${failure}): no delivery gets out.`,
        'Start the proxy, or correct POSTHORN_EGRESS_PROXY.',
      );
}

/** Null: it does. Otherwise why not. */
function connects(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (failure: string | null): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(failure);
    };
    const timer = setTimeout(() => end('no answer'), PATIENCE_MS);
    socket.once('connect', () => end(null));
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
  });
}

/** In production the guard should be whole: an open one lets customers reach what is inside. */
export function judgeGuard({
  mode,
  egressAllow,
  egressHttps,
}: Pick<Config, 'mode' | 'egressAllow' | 'egressHttps'>): Finding {
  const check = 'Egress guard';
  if (mode === 'dev') return ok(check, 'receivers on this machine may be called, as `dev` does');
  const openings = [
    ...(egressAllow.length > 0 ? [`${egressAllow.join(', ')} may be called`] : []),
    ...(egressHttps === 'required' ? [] : [`http is allowed (${egressHttps})`]),
  ];
  if (openings.length === 0) return ok(check, 'private addresses are out of reach, https is required');
  return warning(
    check,
    `${openings.join('; ')}.`,
    'Fine if receivers are your own. Where customers register URLs, narrow POSTHORN_EGRESS_ALLOW and POSTHORN_EGRESS_HTTPS.',
  );
}
