/** A cache of the versions of all event types, with the fields that deliveries need. It is at most a few seconds old. */
import type { Deprecation, TypeVersion } from '../domain/version-pins.ts';

export interface VersionDirectory {
  /** The versions in the order of their creation. Empty: the catalogue has no such type, or no version of it. */
  versionsOf(eventType: string): readonly TypeVersion[];
  /** The deprecation of the type itself, not of its versions. Null: the type is not deprecated and has no sunset. */
  deprecationOf(eventType: string): Deprecation | null;
  /** True if any type or version is deprecated or has a sunset: the headers of deliveries then say so. */
  readonly hasDeprecations: boolean;
}
