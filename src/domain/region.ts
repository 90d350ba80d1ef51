/**
 * A region is a range of shards (docs/adr/0030-regions.md). The default region has number 0 and shards 0 to 255, so a
 * deployment without regions knows only those.
 */
import { SHARDS } from './endpoint.ts';

export const DEFAULT_REGION = 0;
/** What metrics and messages call the default region. No other region may have this name. */
export const DEFAULT_REGION_NAME = 'default';

export const REGION_NAME = /^[a-z][a-z0-9-]{0,31}$/;
export const REGION_NAME_RULE =
  'must begin with a lower-case letter, and have at most 32 lower-case letters, digits and hyphens';

/** The number of the region that a shard belongs to. */
export const regionOf = (shard: number): number => Math.floor(shard / SHARDS);
