/** Lets a PATCH repeat the endpoint as GET shows it, including its read-only fields. */
import { isDeepStrictEqual } from 'node:util';
import { authSecrets } from '../domain/endpoint-auth.ts';
import { type FieldError, invalidFields } from '../domain/problem.ts';
import type { EndpointView } from '../postgres/queries/endpoints.ts';
import type { EndpointPatch } from './endpoint-patch.ts';
import { REDACTED } from './redacted.ts';

/** These may be sent with the value that they have. */
const READ_ONLY = ['id', 'tenant', 'disabled_reason', 'created_at'] as const;
/** These change by themselves, and may be sent with any value. */
const VOLATILE = ['health', 'public_key', 'signing_secrets', 'updated_at', 'warnings'] as const;

/** A patch that may also have the fields that are shown and cannot be changed. */
export type SentBack = EndpointPatch & {
  readonly [name in (typeof READ_ONLY)[number] | (typeof VOLATILE)[number]]?: unknown;
};

/** An endpoint as the API shows it, without its health. */
export type ShowEndpoint = (view: EndpointView) => Readonly<Record<string, unknown>>;

/**
 * Returns the part of a patch that differs from the endpoint as it is shown. Throws `invalid` if a read-only field
 * differs, or if a redacted secret comes with another URL.
 */
export function withoutUnchanged(before: EndpointView, patch: SentBack, show: ShowEndpoint): EndpointPatch {
  const shown = JSON.parse(JSON.stringify(show(before))) as Record<string, unknown>;
  const errors: FieldError[] = [];
  if (patch.url !== undefined && patch.url !== before.url) errors.push(...redactedSecrets(patch));
  const changed: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(patch)) {
    if (isOneOf(VOLATILE, name) || isDeepStrictEqual(value, shown[name])) continue;
    if (isOneOf(READ_ONLY, name))
      errors.push({ path: name, message: 'is read-only: leave it out, or send it as it is' });
    else changed[name] = value;
  }
  if (errors.length > 0) throw invalidFields(errors);
  return changed;
}

const isOneOf = (names: readonly string[], name: string): boolean => names.includes(name);

/** Refused with a new URL: the sender may not know the secrets, and could have them sent to a host of its own. */
function redactedSecrets({ auth, tls, headers }: EndpointPatch): FieldError[] {
  const paths = Object.entries(headers ?? {}).flatMap(([name, value]) =>
    value === REDACTED ? [`headers.${name}`] : [],
  );
  const secret = auth?.type == null ? null : authSecrets[auth.type];
  if (secret !== null && auth?.[secret] === REDACTED) paths.push(`auth.${secret}`);
  if (tls?.key === REDACTED) paths.push('tls.key');
  const message = 'is redacted, and "url" changes: send the value itself, or leave the field out to keep it';
  return paths.map((path) => ({ path, message }));
}
