/** Versions of event types: how they are named, in which state they are, and which of them is the latest. */

export const versionStatuses = ['draft', 'active', 'deprecated', 'retired'] as const;
export type VersionStatus = (typeof versionStatuses)[number];

/** How payloads are checked against the catalogue when they are accepted. */
export const validationModes = ['off', 'warn', 'strict'] as const;
export type ValidationMode = (typeof validationModes)[number];

export const MAX_VERSION_LENGTH = 32;
/** A date or a name such as v2 or v2.1. */
export const VERSION_NAME = /^(\d{4}-\d{2}-\d{2}|v\d+(\.\d+){0,2})$/;
export const VERSION_RULE = 'must be a date such as 2026-04-01, or a name such as v2';

export function isVersionName(text: string): boolean {
  if (text.length > MAX_VERSION_LENGTH || !VERSION_NAME.test(text)) return false;
  return text.startsWith('v') || isVersionDate(text);
}

/** True if the version is named by an existing day. */
export function isVersionDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const time = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

/**
 * Returns the newest active version; if none is active, the newest deprecated one, which is still in use; otherwise null.
 * `versions`: in the order of their creation.
 */
export function latestVersion<V extends { readonly status: VersionStatus }>(
  versions: readonly V[],
): V | null {
  const newest = (wanted: VersionStatus) => versions.findLast(({ status }) => status === wanted);
  return newest('active') ?? newest('deprecated') ?? null;
}
