/**
 * Checks whether a request comes from this Posthorn: signs it again with the secrets of its endpoint and compares the
 * signatures.
 */
import { signMessage } from '../../deliver/index.ts';
import type { Endpoint } from '../../domain/endpoint.ts';
import type { ReceivedRequest } from '../../manage/inboxes.ts';

/** Anyone who knows the token can send requests, and each signature of a large body blocks the process for milliseconds. */
const MAX_CHECKED = 10;

type Verdict = ReceivedRequest['signature'];

interface Given {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** The name of this server. Endpoints whose URL has it are checked first, because it may have other names too. */
  readonly publicUrl: string;
  readonly nowMs: number;
}

export function verifySignature(
  endpoints: readonly Endpoint[],
  { headers, body, publicUrl, nowMs }: Given,
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
  for (const endpoint of chooseEndpoints(endpoints, publicUrl)) {
    const expected = signMessage(endpoint, { eventId, timestampSeconds, body, nowMs });
    const isValid = Object.entries(expected).some(([name, value]) => shareSignature(headers[name], value));
    if (isValid)
      return { verdict: 'valid', detail: `Signed with the secret of the endpoint (${nameOf(endpoint)}).` };
  }
  if (endpoints.length > MAX_CHECKED)
    return {
      verdict: 'unknown',
      detail: `More than ${MAX_CHECKED} endpoints have this address. Not signed with a secret of the ${MAX_CHECKED} that were checked.`,
    };
  return { verdict: 'invalid', detail: 'Not signed with a valid secret of the endpoint.' };
}

function chooseEndpoints(endpoints: readonly Endpoint[], publicUrl: string): readonly Endpoint[] {
  if (endpoints.length <= MAX_CHECKED) return endpoints;
  const isHere = ({ url }: Endpoint): boolean => url.startsWith(`${publicUrl}/`);
  return [...endpoints.filter(isHere), ...endpoints.filter((endpoint) => !isHere(endpoint))].slice(
    0,
    MAX_CHECKED,
  );
}

/** True if one signature matches: during a rotation there are two. */
function shareSignature(given: string | undefined, expected: string): boolean {
  if (given === undefined) return false;
  const parts = new Set(given.split(/[ ,](?=v1a?[,=])/));
  return expected.split(/[ ,](?=v1a?[,=])/).some((part) => !part.startsWith('t=') && parts.has(part));
}

const nameOf = ({ signature }: Endpoint): string =>
  typeof signature === 'string' ? signature : signature.profile;
