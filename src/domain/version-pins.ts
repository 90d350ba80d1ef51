/**
 * Which version of an event type an endpoint gets. Pure.
 *
 *   pin ─▶ target version: the type's version of that name; else, if both are dates, the newest one not after the pin
 *   event ─▶ source version: its `schema_version`; else the version that was current when the event was accepted
 *   source ≠ target ─▶ the shortest chain of converters from source to target
 *
 * Where a step finds nothing, the event is delivered as it was published, with a reason.
 */

/** When an event type or a version was deprecated, and when it is planned to end, in milliseconds since the epoch. */
export interface Deprecation {
  /** Null: not deprecated, or not known since when. */
  readonly deprecatedAt: number | null;
  readonly sunsetAt: number | null;
}

/** A version of an event type, as far as deliveries depend on it. */
export interface TypeVersion extends Deprecation {
  readonly name: string;
  readonly status: 'draft' | 'active' | 'deprecated' | 'retired';
  readonly createdAt: number;
}

export const asPublishedReasons = ['no_versions', 'no_matching_version', 'no_converter'] as const;
/**
 * Why a pinned endpoint gets an event as it was published: the type has no versions, none of them fits the pin (or the
 * event names none), or no chain of converters leads to the version.
 */
export type AsPublishedReason = (typeof asPublishedReasons)[number];

const DATE = /^\d{4}-\d{2}-\d{2}$/;

/** Returns the version that a pin stands for, or null. A date never stands for a draft unless it is its name. */
export function resolvePin(versions: readonly TypeVersion[], pin: string): TypeVersion | null {
  const named = versions.find(({ name }) => name === pin);
  if (named !== undefined) return named;
  if (!DATE.test(pin)) return null;
  let newest: TypeVersion | null = null;
  for (const version of versions) {
    if (version.status === 'draft' || !DATE.test(version.name) || version.name > pin) continue;
    if (newest === null || version.name > newest.name) newest = version;
  }
  return newest;
}

/**
 * Returns the version that an event was written in. Without a `schemaVersion` it is the newest one that is or was active
 * and existed at `acceptedAt`; if none existed yet, the first. `versions`: in the order of their creation.
 */
export function versionOfEvent(
  versions: readonly TypeVersion[],
  schemaVersion: string | null,
  acceptedAt: number,
): TypeVersion | null {
  if (schemaVersion !== null) return versions.find(({ name }) => name === schemaVersion) ?? null;
  const published = versions.filter(({ status }) => status !== 'draft');
  const active = published.filter(({ status }) => status === 'active');
  const existed = ({ createdAt }: TypeVersion): boolean => createdAt <= acceptedAt;
  return active.findLast(existed) ?? published.findLast(existed) ?? published[0] ?? null;
}

export interface VersionStep {
  readonly from: string;
  readonly to: string;
}

/** Returns the shortest chain of steps, or null if there is none. Of equally short ones, the one that was declared first. */
export function findPath(
  steps: readonly VersionStep[],
  from: string,
  to: string,
): readonly VersionStep[] | null {
  const reached = new Map<string, VersionStep | null>([[from, null]]);
  const queue = [from];
  for (const version of queue) {
    if (version === to) break;
    for (const step of steps) {
      if (step.from !== version || reached.has(step.to)) continue;
      reached.set(step.to, step);
      queue.push(step.to);
    }
  }
  const path: VersionStep[] = [];
  for (let step = reached.get(to); step; step = reached.get(step.from)) path.unshift(step);
  return reached.has(to) ? path : null;
}

const ARROW = /^\s*(\S+?)\s*(?:→|->)\s*(\S+)\s*$/;

/** Reads `2026-04-01→2025-10-01` or `2026-04-01->2025-10-01`. Returns null if it is neither. */
export function readStep(text: string): VersionStep | null {
  const [, from, to] = ARROW.exec(text) ?? [];
  if (from === undefined || to === undefined || from === to) return null;
  return { from, to };
}
