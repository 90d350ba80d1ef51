/** Follows a 307 or 308: returns the next destination with its headers, or why the redirect is not followed. */
import type { ErrorClass } from '../domain/outcome.ts';
import type { Destination } from './destination.ts';
import { isCredentialHeader } from './headers.ts';

export interface Redirect {
  readonly status: number;
  readonly location: string | undefined;
  readonly hops: number;
}

export function followRedirect(
  redirect: Redirect,
  allowed: number,
  from: Destination,
  headers: Readonly<Record<string, string>>,
  locate: (url: string) => Destination | ErrorClass,
): { destination: Destination; headers: Record<string, string> } | ErrorClass {
  // Other statuses turn a POST into a GET and would drop the event.
  if (redirect.status !== 307 && redirect.status !== 308) return 'redirect_failed';
  if (redirect.hops >= allowed || redirect.location === undefined) return 'redirect_failed';
  if (!URL.canParse(redirect.location, from.url)) return 'redirect_failed';
  const destination = locate(new URL(redirect.location, from.url).href);
  if (typeof destination === 'string') return destination;
  // Never from https to http, even if the policy allows http.
  if (from.target.tls && !destination.target.tls) return 'redirect_failed';
  if (destination.origin === from.origin) {
    const { target, pool } = from;
    return { destination: { ...destination, target, pool }, headers: { ...headers } };
  }
  // Credentials, including a client certificate, are only for the original origin.
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (!isCredentialHeader(name)) kept[name] = value;
  }
  return { destination, headers: kept };
}
