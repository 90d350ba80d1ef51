/** The custom headers of an endpoint as a caller sees them. */
import { isCredentialHeader } from '../deliver/index.ts';
import { mayReadSecrets } from '../domain/access-scopes.ts';
import type { EndpointConfig } from '../domain/endpoint-config.ts';
import type { Uuid } from '../domain/ids.ts';
import { type FieldError, invalidFields } from '../domain/problem.ts';
import { openHeaders } from '../postgres/sealed-headers.ts';
import type { SecretBox } from '../postgres/secret-box.ts';
import type { Caller } from './caller.ts';
import type { EndpointPatch } from './endpoint-patch.ts';
import { REDACTED } from './redacted.ts';

interface StoredConfig {
  readonly id: Uuid;
  readonly config: EndpointConfig;
}

type HeaderPatch = Record<string, string | null> | null | undefined;

/**
 * Returns the headers with the values that the caller may see, and `[redacted]` for the others. Every caller sees the values of
 * `plain_headers`. No caller sees other headers whose names mark credentials.
 */
export function showHeaders(stored: StoredConfig, box: SecretBox, caller: Caller): Record<string, string> {
  const isShown = visibilityOf(stored.config, caller);
  const shown: Record<string, string> = {};
  for (const [name, value] of Object.entries(openOrRedact(stored, box)))
    shown[name] = isShown(name) ? value : REDACTED;
  return shown;
}

/** Removes from a patch the headers that already have the given value, as far as the caller may know that. */
export function withoutKnownHeaders(
  stored: StoredConfig,
  patch: HeaderPatch,
  box: SecretBox,
  caller: Caller,
): HeaderPatch {
  if (patch == null) return patch;
  const shown = showHeaders(stored, box, caller);
  return Object.fromEntries(
    Object.entries(patch).filter(([name, value]) => value === REDACTED || shown[name] !== value),
  );
}

/**
 * Throws `invalid` if new names in `plain_headers` would show stored values that the caller cannot see yet. Values that
 * the same patch sets may be shown.
 */
export function refuseToReveal(
  { config }: StoredConfig,
  patch: { readonly plain_headers?: readonly string[] | null; readonly headers?: HeaderPatch },
  caller: Caller,
): void {
  const isShown = visibilityOf(config, caller);
  const stored = new Set(
    Object.keys({ ...config.headers, ...config.sealed_headers })
      .filter((name) => !isShown(name))
      .map(lower),
  );
  for (const [name, value] of Object.entries(patch.headers ?? {}))
    if (value !== REDACTED) stored.delete(name.toLowerCase());
  if (patch.headers === null) stored.clear();
  const errors = (patch.plain_headers ?? []).flatMap((name, index): FieldError[] =>
    stored.has(name.toLowerCase())
      ? [
          {
            path: `plain_headers[${index}]`,
            message: 'has a stored value that is not shown: send the value again in "headers"',
          },
        ]
      : [],
  );
  if (errors.length > 0) throw invalidFields(errors);
}

/**
 * Throws `invalid` if a caller who may not read secrets would send stored ones to another URL, where it could read
 * them: on a shared host, another path can belong to somebody else. Secrets that the same patch replaces or removes do
 * not count.
 */
export function refuseToMoveSecrets(
  { url, config }: StoredConfig & { readonly url: string },
  patch: EndpointPatch,
  caller: Caller,
): void {
  if (patch.url === undefined || mayReadSecrets(caller) || normalize(patch.url) === normalize(url)) return;
  const replaced = new Set(
    Object.entries(patch.headers ?? {}).flatMap(([name, value]) => (value === REDACTED ? [] : [lower(name)])),
  );
  const headers = patch.headers === null ? {} : { ...config.headers, ...config.sealed_headers };
  const kept = Object.keys(headers).flatMap((name) => (replaced.has(lower(name)) ? [] : [`headers.${name}`]));
  for (const field of ['auth', 'tls'] as const)
    if (config[field] !== undefined && patch[field] === undefined) kept.push(field);
  if (kept.length === 0) return;
  const message =
    'would go to another URL, and this key may not read it: send it again, or null to remove it';
  throw invalidFields(kept.map((path) => ({ path, message })));
}

const normalize = (url: string): string => (URL.canParse(url) ? new URL(url).href : url);

const lower = (name: string): string => name.toLowerCase();

function visibilityOf(config: EndpointConfig, caller: Caller): (name: string) => boolean {
  const plain = new Set((config.plain_headers ?? []).map(lower));
  const canRead = mayReadSecrets(caller);
  return (name) => plain.has(lower(name)) || (canRead && !isCredentialHeader(lower(name)));
}

/** An endpoint whose encryption key is missing can still be shown, and given new headers. */
function openOrRedact({ id, config }: StoredConfig, box: SecretBox): Record<string, string> {
  try {
    return openHeaders(config, id, box).headers ?? {};
  } catch {
    const sealed = Object.keys(config.sealed_headers ?? {}).map((name) => [name, REDACTED]);
    return { ...config.headers, ...Object.fromEntries(sealed) };
  }
}
