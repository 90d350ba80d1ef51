import { newId, type Uuid } from '../../../src/domain/ids.ts';

/** The last byte of an endpoint's id is its shard. */
export function endpointIdOf(shard?: number): Uuid {
  const id = newId(Date.now());
  return shard === undefined ? id : id.slice(0, 34) + shard.toString(16).padStart(2, '0');
}
