/** The problems that every route of a kind can answer with. */
import type { ProblemCode } from '../../domain/problem.ts';
import type { DocumentedRoute } from './documented-route.ts';

/** Problems of the connection or of Posthorn itself, which any request can get. */
export const unexpectedProblems: readonly ProblemCode[] = [
  'request_timeout',
  'headers_too_large',
  'internal',
  'unavailable',
];

/** DELETE needs no body, but one that is sent is read. */
const METHODS_WITH_BODY = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

export function impliedProblems(route: DocumentedRoute): ProblemCode[] {
  const { method, schema, config } = route;
  const hasBody = METHODS_WITH_BODY.has(method);
  const query = namesOf(schema.querystring);
  const codes: ProblemCode[] = ['bad_request'];
  if (hasBody) codes.push('malformed_json', 'too_large', 'unsupported_media_type');
  if (hasBody || query.length > 0) codes.push('invalid');
  if (query.includes('cursor')) codes.push('bad_cursor');
  if (schema.params !== undefined) codes.push('not_found');
  // Any key may be restricted to scopes and addresses.
  if (config.needsKey === true) codes.push('unauthorized', 'forbidden', 'rate_limited');
  if (config.idempotent === true) codes.push('idempotency_conflict', 'request_in_progress');
  return codes;
}

const namesOf = (schema: unknown): string[] =>
  Object.keys((schema as { properties?: object } | undefined)?.properties ?? {});
