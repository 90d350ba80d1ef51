/** `auth` and `tls` of an endpoint: a patch replaces each of them whole, and checks only what it replaces. */

import { checkUrl, type EgressPolicy } from '../deliver/index.ts';
import { type AuthConfig, type AuthType, authSecrets, type TlsConfig } from '../domain/endpoint-auth.ts';
import type { EndpointConfig } from '../domain/endpoint-config.ts';
import type { FieldError } from '../domain/problem.ts';
import { findCertificateError } from './client-certificate.ts';
import type { EndpointPatch } from './endpoint-patch.ts';
import { REDACTED } from './redacted.ts';
import { type SettingError, urlErrors } from './setting-errors.ts';

type Field = Exclude<keyof AuthConfig, 'type'>;
const requiredFields: Record<AuthType, readonly Field[]> = {
  basic: ['username', 'password'],
  bearer: ['token'],
  oauth2: ['token_url', 'client_id', 'client_secret'],
};

/** Writes `auth` and `tls` into the configuration. Secrets stay in plain text there until they are sealed. */
export function patchCredentials(config: EndpointConfig, { auth, tls }: EndpointPatch): void {
  const sealed = { ...config.sealed_settings };
  if (auth !== undefined) {
    const patched = auth === null ? null : (withoutNulls(auth) as AuthConfig);
    if (patched !== null && keepsAuthSecret(config.auth, patched)) delete patched[authSecrets[patched.type]];
    else delete sealed.auth;
    if (patched === null) delete config.auth;
    else config.auth = patched;
  }
  if (tls !== undefined) {
    const patched = tls === null ? null : (withoutNulls(tls) as TlsConfig);
    // The stored key was checked against this certificate.
    if (patched !== null && patched.key === REDACTED && patched.cert === config.tls?.cert) delete patched.key;
    else delete sealed.tls;
    if (patched === null) delete config.tls;
    else config.tls = patched;
  }
  if (Object.keys(sealed).length > 0) config.sealed_settings = sealed;
  else delete config.sealed_settings;
}

/** Whether `[redacted]` stands for the stored secret. Another type or `token_url` would send it elsewhere. */
const keepsAuthSecret = (before: AuthConfig | undefined, patched: AuthConfig): boolean =>
  patched[authSecrets[patched.type]] === REDACTED &&
  before?.type === patched.type &&
  before.token_url === patched.token_url;

const withoutNulls = (fields: object): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));

/**
 * Checks `auth` and `tls` if the patch sets them. Stored ones are not checked again: an expired certificate must not
 * prevent pausing the endpoint.
 */
export function checkCredentials(
  { auth, tls, sealed_settings: sealed }: EndpointConfig,
  patch: EndpointPatch,
  egress: EgressPolicy,
  now: number,
): SettingError[] {
  const errors: SettingError[] = [];
  if (auth !== undefined && patch.auth !== undefined)
    errors.push(...checkAuth(auth, sealed?.auth !== undefined, egress));
  const certificate = tls !== undefined && patch.tls !== undefined ? findCertificateError(tls, now) : null;
  if (certificate !== null) errors.push(certificate);
  return errors;
}

/** Checks settings that exclude each other, whichever of them the patch sets. `url` is null if it is invalid itself. */
export function checkCombination(url: string | null, config: EndpointConfig): FieldError[] {
  const { auth, tls, headers, sealed_headers } = config;
  const errors: FieldError[] = [];
  const own = Object.keys({ ...headers, ...sealed_headers }).find((name) => /^authorization$/i.test(name));
  if (auth !== undefined && own !== undefined)
    errors.push({ path: `headers.${own}`, message: 'is also set by "auth": remove one of the two' });
  if (tls !== undefined && url !== null && !url.startsWith('https:'))
    errors.push({ path: 'tls', message: 'needs an https URL' });
  return errors;
}

const problem = (field: Field, message: string): FieldError => ({ path: `auth.${field}`, message });

/** Returns which fields are missing or do not belong to the type. `hasSecret`: the stored secret is kept, so `auth` has none. */
export function findAuthFieldErrors(auth: AuthConfig, hasSecret: boolean): FieldError[] {
  const fields = requiredFields[auth.type];
  const known = new Set<string>(['type', ...fields, ...(auth.type === 'oauth2' ? ['scope'] : [])]);
  return [
    ...fields
      .filter((field) => auth[field] === undefined && !(hasSecret && field === authSecrets[auth.type]))
      .map((field) => problem(field, `is required with type "${auth.type}"`)),
    ...(Object.keys(auth) as Field[])
      .filter((field) => !known.has(field))
      .map((field) => problem(field, `is not allowed with type "${auth.type}"`)),
  ];
}

function checkAuth(auth: AuthConfig, hasSecret: boolean, egress: EgressPolicy): SettingError[] {
  const fieldErrors = findAuthFieldErrors(auth, hasSecret);
  if (fieldErrors.length > 0) return fieldErrors;
  const secret = authSecrets[auth.type];
  if (auth[secret] === REDACTED)
    return [
      problem(secret, 'is redacted: send the value itself, or leave "auth" out to keep what is stored'),
    ];
  return requiredFields[auth.type].concat('scope').flatMap((field): SettingError[] => {
    const text = auth[field];
    if (text === undefined) return [];
    // A tenant chooses this URL and Posthorn calls it, so the egress policy applies to it.
    const invalidUrl = field === 'token_url' ? urlErrors('auth.token_url', checkUrl(text, egress)) : [];
    if (invalidUrl.length > 0) return invalidUrl;
    const message = textError(field, text);
    return message === null ? [] : [problem(field, message)];
  });
}

/** What RFC 7617 (basic), 6750 (bearer) and 6749 (OAuth) allow. Null: the text is valid. */
function textError(field: Field, text: string): string | null {
  switch (field) {
    case 'username':
      return /[\p{Cc}:]/u.test(text) ? 'must not contain control characters or a colon' : null;
    case 'token':
      return /^[\x21-\x7e]+$/.test(text) ? null : 'must be visible ASCII characters without spaces';
    case 'scope':
      return /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/.test(text)
        ? null
        : 'must be scopes separated by single spaces';
    default:
      return /\p{Cc}/u.test(text) ? 'must not contain control characters' : null;
  }
}

/** `auth` and `tls` with their sealed secrets, so that comparing two configurations shows that a secret changed. */
export function credentialsOf({ auth, tls, sealed_settings: sealed }: EndpointConfig) {
  return { auth: auth && { ...auth, sealed: sealed?.auth }, tls: tls && { ...tls, sealed: sealed?.tls } };
}
