/**
 * Seals the headers that earlier versions stored in plain text. Each batch replaces only the configurations that are
 * still as they were read, so it is safe while servers run, and to interrupt and repeat.
 */
import type { EndpointConfig } from '../../domain/endpoint-config.ts';
import type { Uuid } from '../../domain/ids.ts';
import type { Pool } from '../database.ts';
import { sealHeaders } from '../sealed-headers.ts';
import type { SecretBox } from '../secret-box.ts';

/** Seals the headers of up to `max` endpoints. Returns how many endpoints had headers in plain text. */
export async function sealPlainHeaders(pool: Pool, box: SecretBox, max: number): Promise<number> {
  const { rows } = await pool.query<{ id: Uuid; config: EndpointConfig }>(
    "select id, config from posthorn.endpoints where config ? 'headers' order by id limit $1",
    [max],
  );
  if (rows.length === 0) return 0;
  await pool.query(
    `update posthorn.endpoints e set config = n.config
       from unnest($1::uuid[], $2::jsonb[], $3::jsonb[]) as n (id, was, config)
      where e.id = n.id and e.config = n.was`,
    [
      rows.map(({ id }) => id),
      rows.map(({ config }) => JSON.stringify(config)),
      rows.map(({ id, config }) => JSON.stringify(sealHeaders(config, id, box))),
    ],
  );
  return rows.length;
}
