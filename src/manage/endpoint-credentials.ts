/** What a caller gives as `auth` and `tls`: both are replaced whole, and checked when they are given. */

import { REDACTED } from '../api/endpoints/auth-schema.ts';
import type { EndpointPatch } from '../api/endpoints/schema.ts';
import { checkUrl, type EgressPolicy } from '../deliver/index.ts';
import { type AuthConfig, type AuthType, authSecrets, type TlsConfig } from '../domain/endpoint-auth.ts';
import type { EndpointConfig } from '../domain/endpoint-config.ts';
import { type FieldError, Problem } from '../domain/problem.ts';
import { certificateError } from './client-certificate.ts';

type Field = Exclude<keyof AuthConfig, 'type'>;
const required: Record<AuthType, readonly Field[]> = {
  basic: ['username', 'password'],
  bearer: ['token'],
  oauth2: ['token_url', 'client_id', 'client_secret'],
};

/** Puts them into the configuration. Secrets are in plain text there until it is sealed. */
export function patchCredentials(config: EndpointConfig, { auth, tls }: EndpointPatch): void {
  const sealed = { ...config.sealed_settings };
  if (auth !== undefined) {
    delete sealed.auth;
    if (auth === null) delete config.auth;
    else config.auth = withoutNulls(auth) as AuthConfig;
  }
  if (tls !== undefined) {
    delete sealed.tls;
    if (tls === null) delete config.tls;
    else config.tls = withoutNulls(tls) as TlsConfig;
  }
  if (Object.keys(sealed).length > 0) config.sealed_settings = sealed;
  else delete config.sealed_settings;
}

const withoutNulls = (fields: object): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));

/** Of those that are given. What is there already is not judged again: a certificate that has expired stops nobody's `pause`. */
export function checkCredentials(
  { auth, tls }: EndpointConfig,
  given: EndpointPatch,
  egress: EgressPolicy,
  now: number,
): FieldError[] {
  const errors: FieldError[] = [];
  if (auth !== undefined && given.auth !== undefined) errors.push(...checkAuth(auth, egress));
  const certificate = tls !== undefined && given.tls !== undefined ? certificateError(tls, now) : null;
  if (certificate !== null) errors.push(certificate);
  return errors;
}

/** What does not go together, whichever of them came last. */
export function checkCombination(url: string, config: EndpointConfig): FieldError[] {
  const { auth, tls, headers, sealed_headers } = config;
  const errors: FieldError[] = [];
  const own = Object.keys({ ...headers, ...sealed_headers }).find((name) => /^authorization$/i.test(name));
  if (auth !== undefined && own !== undefined)
    errors.push({ path: `headers.${own}`, message: 'is set by auth: take one of the two away' });
  if (tls !== undefined && !url.startsWith('https:'))
    errors.push({ path: 'tls', message: 'goes with an https URL only' });
  return errors;
}

function checkAuth(auth: AuthConfig, egress: EgressPolicy): FieldError[] {
  const fields = required[auth.type];
  const known = new Set<string>(['type', ...fields, ...(auth.type === 'oauth2' ? ['scope'] : [])]);
  const problem = (field: Field, message: string): FieldError => ({ path: `auth.${field}`, message });
  const shape = [
    ...fields
      .filter((field) => auth[field] === undefined)
      .map((field) => problem(field, `is required with type "${auth.type}"`)),
    ...(Object.keys(auth) as Field[])
      .filter((field) => !known.has(field))
      .map((field) => problem(field, `does not go with type "${auth.type}"`)),
  ];
  if (shape.length > 0) return shape;
  const secret = authSecrets[auth.type];
  if (auth[secret] === REDACTED)
    return [problem(secret, 'is redacted: give the value itself, or leave auth out to keep it as it is')];
  if (auth.token_url !== undefined) checkTokenUrl(auth.token_url, egress);
  return fields.concat('scope').flatMap((field) => {
    const message = auth[field] === undefined ? null : textError(field, auth[field]);
    return message === null ? [] : [problem(field, message)];
  });
}

/** A tenant chooses it, and Posthorn calls it: like the endpoint's own URL. */
function checkTokenUrl(url: string, egress: EgressPolicy): void {
  const path = 'auth.token_url';
  const checked = checkUrl(url, egress);
  if (checked.ok) return;
  const { code, message } = checked;
  throw new Problem(code, `${path}: ${message}`, { errors: [{ path, message }] });
}

/** What the standards let be sent (RFC 7617, 6750, 6749). */
function textError(field: Field, text: string): string | null {
  switch (field) {
    case 'username':
      return /[\p{Cc}:]/u.test(text) ? 'must not contain control characters or a colon' : null;
    case 'token':
      return /^[\x21-\x7e]+$/.test(text) ? null : 'must be visible ASCII characters without blanks';
    case 'scope':
      return /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/.test(text)
        ? null
        : 'must be scopes separated by single blanks';
    default:
      return /\p{Cc}/u.test(text) ? 'must not contain control characters' : null;
  }
}
