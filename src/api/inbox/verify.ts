/**
 * Checks whether a request comes from this Posthorn: signs it again with the secrets of its endpoint and compares the
 * signatures.
 */
import { signMessage } from '../../deliver/index.ts';
import type { Endpoint } from '../../domain/endpoint.ts';
import type { ReceivedRequest } from './inboxes.ts';

type Verdict = ReceivedRequest['signature'];

/** Returns the endpoints of the tenant whose URL leads to the inbox with this token. */
export function endpointsAt(token: string, tenant: string, endpoints: Iterable<Endpoint>): Endpoint[] {
  return [...endpoints].filter(
    (endpoint) => endpoint.tenant === tenant && !endpoint.deleted && leadsTo(token, endpoint.url),
  );
}

/** Compares the token only: with a query, an escaped character or another name of this host, a URL leads here too. */
function leadsTo(token: string, url: string): boolean {
  // Most URLs need not be parsed.
  if (!url.includes(token) && !/[%\t\r\n]/.test(url)) return false;
  try {
    return decodeURIComponent(new URL(url).pathname).split('/').includes(token);
  } catch {
    return false;
  }
}

export function verifySignature(
  endpoints: readonly Endpoint[],
  headers: Readonly<Record<string, string>>,
  body: Buffer,
  nowMs: number,
): Verdict {
  if (endpoints.length === 0)
    return {
      verdict: 'unknown',
      detail: 'No endpoint has this address, so there is no secret to check it with.',
    };
  const eventId = headers['webhook-id'];
  const timestampSeconds = Number(headers['webhook-timestamp']);
  if (eventId === undefined || !Number.isInteger(timestampSeconds))
    return { verdict: 'invalid', detail: 'The headers webhook-id and webhook-timestamp are missing.' };
  for (const endpoint of endpoints) {
    const expected = signMessage(endpoint, { eventId, timestampSeconds, body, nowMs });
    const isValid = Object.entries(expected).some(([name, value]) => shareSignature(headers[name], value));
    if (isValid)
      return { verdict: 'valid', detail: `Signed with the secret of the endpoint (${nameOf(endpoint)}).` };
  }
  return { verdict: 'invalid', detail: 'Not signed with a valid secret of the endpoint.' };
}

/** True if one signature matches: during a rotation there are two. */
function shareSignature(given: string | undefined, expected: string): boolean {
  if (given === undefined) return false;
  const parts = new Set(given.split(/[ ,](?=v1a?[,=])/));
  return expected.split(/[ ,](?=v1a?[,=])/).some((part) => !part.startsWith('t=') && parts.has(part));
}

const nameOf = ({ signature }: Endpoint): string =>
  typeof signature === 'string' ? signature : signature.profile;
