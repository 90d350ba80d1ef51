/** A cache of the versions of all event types, as far as deliveries depend on them. A few seconds behind at most. */
import type { TypeVersion } from '../domain/version-pins.ts';

export interface VersionDirectory {
  /** In the order of their creation. Empty: the catalogue does not have the type, or no version of it. */
  versionsOf(eventType: string): readonly TypeVersion[];
  /** True if any version is deprecated or has a sunset: deliveries then announce it. */
  readonly hasNotices: boolean;
}
