/** Lets a PATCH repeat the endpoint as GET shows it, including its read-only fields. */
import { isDeepStrictEqual } from 'node:util';
import { authSecrets } from '../domain/endpoint-auth.ts';
import { type FieldError, invalidFields } from '../domain/problem.ts';
import type { EndpointView } from '../postgres/queries/endpoints.ts';
import type { EndpointPatch } from './endpoint-patch.ts';
import { type ReadOnlyFields, splitReadOnly, toJson } from './read-only-fields.ts';
import { REDACTED } from './redacted.ts';

const READ_ONLY = {
  asShown: ['id', 'tenant', 'disabled_reason', 'created_at'],
  ignored: ['health', 'public_key', 'signing_secrets', 'updated_at', 'warnings'],
} as const satisfies ReadOnlyFields;

/** A patch that may also have the fields that are shown and cannot be changed. */
export type PatchWithReadOnly = EndpointPatch & {
  readonly [name in (typeof READ_ONLY)['asShown' | 'ignored'][number]]?: unknown;
};

/** An endpoint as the API shows it, without its health. */
export type ShowEndpoint = (view: EndpointView) => Readonly<Record<string, unknown>>;

/**
 * Returns the part of a patch that differs from the endpoint as it is shown. Throws `invalid` if a read-only field
 * differs, or if a redacted secret comes with another URL.
 */
export function findChangedFields(
  before: EndpointView,
  patch: PatchWithReadOnly,
  show: ShowEndpoint,
): EndpointPatch {
  const shown = toJson(show(before));
  const { rest, errors } = splitReadOnly(patch, shown, READ_ONLY);
  if (patch.url !== undefined && patch.url !== before.url) errors.unshift(...findRedactedSecrets(patch));
  if (errors.length > 0) throw invalidFields(errors);
  return Object.fromEntries(
    Object.entries(rest).filter(([name, value]) => !isDeepStrictEqual(value, shown[name])),
  );
}

/** A new URL needs the secrets themselves: a caller who does not know them could have them sent to its own host. */
function findRedactedSecrets({ auth, tls, headers }: EndpointPatch): FieldError[] {
  const paths = Object.entries(headers ?? {}).flatMap(([name, value]) =>
    value === REDACTED ? [`headers.${name}`] : [],
  );
  const secret = auth?.type == null ? null : authSecrets[auth.type];
  if (secret !== null && auth?.[secret] === REDACTED) paths.push(`auth.${secret}`);
  if (tls?.key === REDACTED) paths.push('tls.key');
  const message = 'is redacted, and "url" changes: send the value itself, or leave the field out to keep it';
  return paths.map((path) => ({ path, message }));
}
