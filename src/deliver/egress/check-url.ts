/**
 * Checks a URL without DNS: when an endpoint is created, before each attempt and at each redirect. The connector
 * resolves and vets names later, for every new socket.
 */
import { isIP } from 'node:net';
import { type CompiledPolicy, compilePolicy, type EgressPolicy, isLoopback } from './policy.ts';

export type UrlCheck =
  | { readonly ok: true; readonly url: string }
  | { readonly ok: false; readonly code: 'url_invalid' | 'url_forbidden'; readonly message: string };

/** Proxies and servers truncate longer URLs anyway. */
export const MAX_URL_LENGTH = 2048;

/** Suffixes of names that are never public: special-use domains and common internal ones. */
const INTERNAL_SUFFIXES = [
  'local',
  'internal',
  'localdomain',
  'arpa',
  'lan',
  'intranet',
  'corp',
  'home',
  'private',
  'svc',
  'consul',
  'onion',
  'invalid',
];
const METADATA_NAMES = ['metadata.google.internal', 'metadata', 'instance-data'];

const invalid = (message: string): UrlCheck => ({ ok: false, code: 'url_invalid', message });
const forbidden = (message: string): UrlCheck => ({ ok: false, code: 'url_forbidden', message });

/** Returns the host without brackets and without the final dot. */
export function bareHost(hostname: string): string {
  if (hostname.startsWith('[')) return hostname.slice(1, -1);
  return hostname.endsWith('.') ? hostname.slice(0, -1) : hostname;
}

export const isLocalhostName = (host: string): boolean => host === 'localhost' || host.endsWith('.localhost');

const MAX_NAME_LENGTH = 253;
const MAX_LABEL_LENGTH = 63;

/** Rejects names such as `localhost..`, which resolvers treat differently. */
function isName(host: string): boolean {
  return (
    host.length <= MAX_NAME_LENGTH &&
    host.split('.').every((label) => label.length > 0 && label.length <= MAX_LABEL_LENGTH)
  );
}

function isInternalName(host: string): boolean {
  return (
    !host.includes('.') || INTERNAL_SUFFIXES.some((suffix) => host === suffix || host.endsWith(`.${suffix}`))
  );
}

function isLoopbackHost(host: string): boolean {
  return isLocalhostName(host) || isLoopback(host);
}

function checkHost(host: string, policy: CompiledPolicy): UrlCheck | null {
  if (host === '') return invalid('The URL has no host.');
  if (isIP(host) !== 0 || isLocalhostName(host)) {
    const reachable =
      isIP(host) !== 0 ? policy.permits(host) : policy.permits('127.0.0.1') || policy.permits('::1');
    return reachable
      ? null
      : forbidden('The URL leads to a private, loopback or otherwise reserved address.');
  }
  if (!isName(host)) return invalid('The host is not a valid name.');
  if (METADATA_NAMES.includes(host)) return forbidden('The URL names a metadata service.');
  if (isInternalName(host) && !policy.allowsInternalNames)
    return forbidden('The URL names a host of an internal network.');
  return null;
}

function schemesOf({ requireHttps, allowHttpToLoopback }: EgressPolicy): string {
  if (!requireHttps) return 'https:// or http://';
  return allowHttpToLoopback ? 'https://, or http:// if it leads to loopback' : 'https://';
}

/** Returns the URL, or why no policy permits it. `schemes` is for the message. */
function parseHttpUrl(text: string, schemes: string): URL | string {
  if (text.length > MAX_URL_LENGTH) return `The URL is longer than ${MAX_URL_LENGTH} characters.`;
  if (!URL.canParse(text)) return 'The URL is malformed.';
  const url = new URL(text);
  return url.protocol === 'https:' || url.protocol === 'http:' ? url : `The URL must begin with ${schemes}.`;
}

/** Returns why no policy permits the URL, or null if its syntax is valid. */
export function findUrlSyntaxError(text: string): string | null {
  const url = parseHttpUrl(text, 'https://, or http:// if the operator allows it');
  return typeof url === 'string' ? url : null;
}

export function checkUrl(text: string, settings: EgressPolicy): UrlCheck {
  const policy = compilePolicy(settings);
  const url = parseHttpUrl(text, schemesOf(settings));
  if (typeof url === 'string') return invalid(url);
  if (url.username !== '' || url.password !== '')
    return forbidden('Credentials in the URL are not allowed; use the endpoint’s auth or headers.');
  const host = bareHost(url.hostname);
  const problem = checkHost(host, policy);
  if (problem !== null) return problem;
  if (url.protocol === 'http:' && settings.requireHttps) {
    if (!settings.allowHttpToLoopback) return forbidden('The URL must use https.');
    if (!isLoopbackHost(host)) return forbidden('The URL must use https; http is for loopback only.');
  }
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  if (port === 0) return invalid('Port 0 cannot be called.');
  if (settings.allowedPorts !== 'any' && !settings.allowedPorts.includes(port))
    return forbidden(`Port ${port} is not allowed.`);
  // A fragment is never sent.
  url.hash = '';
  return { ok: true, url: url.href };
}
