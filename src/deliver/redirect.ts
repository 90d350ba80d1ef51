/** Follows a 307 or 308: returns the next destination with its headers, or why the redirect is not followed. */
import type { ErrorClass } from '../domain/outcome.ts';
import type { Destination } from './destination.ts';
import { isCredentialHeader } from './headers.ts';

export interface Redirect {
  readonly status: number;
  readonly location: string | undefined;
  readonly hops: number;
}

/** Which redirects of an attempt are followed, and which headers the next request keeps. */
export interface RedirectRules {
  readonly allowed: number;
  /** True: follow redirects only on the host of the endpoint, because only that host has consented to the requests. */
  readonly withinHost: boolean;
  /** Names of the headers that the endpoint or the event has set, in lower case. */
  readonly customHeaders: ReadonlySet<string>;
  /** Checks the target like any other URL. */
  readonly locate: (url: string) => Destination | ErrorClass;
}

export function followRedirect(
  redirect: Redirect,
  rules: RedirectRules,
  from: Destination,
  headers: Readonly<Record<string, string>>,
): { destination: Destination; headers: Record<string, string> } | ErrorClass {
  // Other statuses turn a POST into a GET, which carries no event.
  if (redirect.status !== 307 && redirect.status !== 308) return 'redirect_failed';
  if (redirect.hops >= rules.allowed || redirect.location === undefined) return 'redirect_failed';
  if (!URL.canParse(redirect.location, from.url)) return 'redirect_failed';
  const destination = rules.locate(new URL(redirect.location, from.url).href);
  if (typeof destination === 'string') return destination;
  // Never from https to http, even if the policy allows http.
  if (from.target.tls && !destination.target.tls) return 'redirect_failed';
  if (rules.withinHost && destination.target.host !== from.target.host) return 'redirect_failed';
  if (destination.origin === from.origin) {
    const { target, pool } = from;
    return { destination: { ...destination, target, pool }, headers: { ...headers } };
  }
  // Custom headers and credentials, including a client certificate, are only for the original origin. The name of a
  // header does not tell whether its value is secret.
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (!rules.customHeaders.has(name) && !isCredentialHeader(name)) kept[name] = value;
  }
  return { destination, headers: kept };
}
