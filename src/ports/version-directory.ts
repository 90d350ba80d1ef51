/** A cache of the versions of all event types, as far as deliveries depend on them. A few seconds behind at most. */
import type { Deprecation, TypeVersion } from '../domain/version-pins.ts';

export interface VersionDirectory {
  /** In the order of their creation. Empty: the catalogue does not have the type, or no version of it. */
  versionsOf(eventType: string): readonly TypeVersion[];
  /** Of the type itself, not of its versions. Null: it is not deprecated and has no sunset. */
  deprecationOf(eventType: string): Deprecation | null;
  /** True if any type or version is deprecated or has a sunset: the headers of deliveries then say so. */
  readonly hasDeprecations: boolean;
}
