/**
 * The headers of a response as they are stored with its attempt: a JSON array of names and values in turn, in which a
 * number stands for a name that many receivers send. Receivers behind a proxy send a dozen, and the names are half of
 * the text. Earlier releases stored a JSON object.
 */

/** Stored attempts refer to these names by their place: only add names, at the end. */
const KNOWN_NAMES = [
  'content-type',
  'content-length',
  'date',
  'server',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'cache-control',
  'vary',
  'etag',
  'x-powered-by',
  'x-request-id',
  'strict-transport-security',
  'x-content-type-options',
  'x-frame-options',
  'x-xss-protection',
  'referrer-policy',
  'content-security-policy',
  'set-cookie',
  'via',
  'age',
  'expires',
  'pragma',
  'last-modified',
  'accept-ranges',
  'alt-svc',
  'content-encoding',
  'server-timing',
  'access-control-allow-origin',
  'access-control-allow-methods',
  'access-control-allow-headers',
  'permissions-policy',
  'cross-origin-opener-policy',
  'cross-origin-resource-policy',
  'nel',
  'report-to',
  'cf-ray',
  'cf-cache-status',
  'x-cache',
  'x-amz-cf-id',
  'x-amz-cf-pop',
  'x-amzn-requestid',
  'x-amzn-trace-id',
  'x-amz-apigw-id',
  'apigw-requestid',
  'x-runtime',
  'x-vercel-id',
  'x-vercel-cache',
  'x-cloud-trace-context',
  'x-envoy-upstream-service-time',
  'x-correlation-id',
  'x-served-by',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
] as const;
const NUMBERS = new Map<string, number>(KNOWN_NAMES.map((name, number) => [name, number]));

export function packReceivedHeaders(headers: Readonly<Record<string, string>>): string {
  const packed: (string | number)[] = [];
  for (const [name, value] of Object.entries(headers)) packed.push(NUMBERS.get(name) ?? name, value);
  return JSON.stringify(packed);
}

export function parseReceivedHeaders(text: string): Record<string, string> {
  const stored = JSON.parse(text) as Record<string, string> | (string | number)[];
  if (!Array.isArray(stored)) return stored;
  const entries: [string, string][] = [];
  for (let i = 0; i + 1 < stored.length; i += 2) {
    const name = stored[i]!;
    // A later release may know more names.
    entries.push([
      typeof name === 'number' ? (KNOWN_NAMES[name] ?? `header-${name}`) : name,
      String(stored[i + 1]),
    ]);
  }
  // Not by assignment: a receiver may send a header named "__proto__".
  return Object.fromEntries(entries);
}
