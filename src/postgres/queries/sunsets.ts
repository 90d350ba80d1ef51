import type { PassedSunset, SunsetKinds } from '../../ports/operational-store.ts';
import type { Client } from '../database.ts';

/** Marks and returns the types and versions that passed their sunset. One whose sunset was moved is returned again. */
export async function takeSunsets(client: Client, kinds: SunsetKinds): Promise<PassedSunset[]> {
  return [
    ...(kinds.types ? await take(client, 'event_types', 'name', 'null') : []),
    ...(kinds.versions ? await take(client, 'event_type_versions', 'event_type', 'version') : []),
  ];
}

async function take(
  client: Client,
  table: 'event_types' | 'event_type_versions',
  eventType: 'name' | 'event_type',
  version: 'null' | 'version',
): Promise<PassedSunset[]> {
  const { rows } = await client.query<PassedSunset>(
    `update posthorn.${table} set sunset_noted_at = sunset_at
      where sunset_at <= now() and sunset_noted_at is distinct from sunset_at
      returning ${eventType} as "eventType", ${version} as version,
                extract(epoch from sunset_at)::float8 * 1000 as "sunsetAt"`,
  );
  return rows;
}
