/** A request to a token endpoint (RFC 6749, client credentials), and how its answer is read. */
import { createHash } from 'node:crypto';
import type { OAuthClient } from '../domain/endpoint-auth.ts';
import type { Uuid } from '../domain/ids.ts';
import type { AttemptOutcome } from '../domain/outcome.ts';
import { DeliveryError } from './classify-error.ts';
import { basicAuthorization } from './headers.ts';

/** Limit for the token endpoint, even if the endpoint's deliveries have more time. */
export const TOKEN_TIMEOUT_MS = 10_000;
export const TOKEN_RESPONSE_CAP_BYTES = 64 * 1024;
const MAX_TOKEN_LENGTH = 8192;
const TOKEN = /^[\x21-\x7e]+$/;

export interface TokenAnswer {
  readonly token: string;
  /** Null: the answer did not contain it. */
  readonly lifetimeSeconds: number | null;
}

/** Identifies the endpoint and everything its tokens depend on. */
export function tokenKey(endpointId: Uuid, client: OAuthClient): string {
  const { tokenUrl, clientId, clientSecret, scope } = client;
  const hash = createHash('sha256').update(JSON.stringify([tokenUrl, clientId, clientSecret, scope]));
  return `${endpointId} ${hash.digest('base64url')}`;
}

/** Identifies the tenant and the host that gets its token requests. */
export const tokenGroup = (tenant: string, { tokenUrl }: OAuthClient): string =>
  `${tenant} ${URL.canParse(tokenUrl) ? new URL(tokenUrl).hostname : tokenUrl}`;

export function tokenRequest(
  client: OAuthClient,
  userAgent: string,
): { headers: Record<string, string>; body: Buffer } {
  const { clientId, clientSecret, scope } = client;
  const form = new URLSearchParams({ grant_type: 'client_credentials', ...(scope !== null && { scope }) });
  return {
    headers: {
      accept: 'application/json',
      authorization: basicAuthorization(formEncoded(clientId), formEncoded(clientSecret)),
      'content-type': 'application/x-www-form-urlencoded',
      'user-agent': userAgent,
    },
    body: Buffer.from(form.toString()),
  };
}

/** RFC 6749 requires id and secret to be form-encoded before they are joined. */
const formEncoded = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1);

/** Returns the token, or a failure with its class, its status and the error codes of the RFC. Nothing else of the answer is recorded. */
export function readTokenAnswer(outcome: AttemptOutcome): TokenAnswer | DeliveryError {
  const { statusCode, responseBody, responseTruncated } = outcome;
  if (outcome.shortage !== undefined) return new DeliveryError('internal', { code: outcome.shortage });
  if (statusCode === null) return failed(outcome.error!.class);
  const answer = responseTruncated ? null : parseObject(responseBody);
  if (outcome.error !== null) return failed(`${statusCode}${knownError(answer?.error)}`);
  if (answer === null) return failed(`${statusCode}, not a JSON object`);
  const { access_token: token, token_type: type, expires_in: lifetime } = answer;
  if (typeof token !== 'string' || token.length > MAX_TOKEN_LENGTH || !TOKEN.test(token))
    return failed(`${statusCode}, no usable access_token`);
  if (type !== undefined && (typeof type !== 'string' || type.toLowerCase() !== 'bearer'))
    return failed(`${statusCode}, token_type is not Bearer`);
  const seconds = Number(lifetime ?? Number.NaN);
  return { token, lifetimeSeconds: Number.isFinite(seconds) ? Math.max(0, seconds) : null };
}

const failed = (detail: string): DeliveryError => new DeliveryError('oauth_failed', { code: detail });

const KNOWN_ERRORS = new Set<unknown>([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
]);
const knownError = (error: unknown): string => (KNOWN_ERRORS.has(error) ? ` ${error}` : '');

function parseObject(body: Buffer | null): Record<string, unknown> | null {
  try {
    const parsed: unknown = JSON.parse(body?.toString('utf8') ?? '');
    return typeof parsed === 'object' && !Array.isArray(parsed)
      ? (parsed as Record<string, unknown> | null)
      : null;
  } catch {
    return null;
  }
}
