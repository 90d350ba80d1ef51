import type { SunsetVersion } from '../../ports/operational-store.ts';
import type { Client } from '../database.ts';

/** Marks and returns the versions that passed their sunset. One whose sunset was moved is returned again. */
export async function takeSunsets(client: Client): Promise<SunsetVersion[]> {
  const { rows } = await client.query<SunsetVersion>(
    `update posthorn.event_type_versions set sunset_noted_at = sunset_at
      where sunset_at <= now() and sunset_noted_at is distinct from sunset_at
      returning event_type as "eventType", version, extract(epoch from sunset_at)::float8 * 1000 as "sunsetAt"`,
  );
  return rows;
}
