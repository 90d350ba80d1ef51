import { createHash } from 'node:crypto';
import type { Pool } from '../database.ts';

/**
 * Returns 32 bytes that only processes on this database can derive. A copy of the database on another server gives other bytes,
 * because the system identifier of its cluster differs.
 */
export async function readDeploymentSecret(pool: Pool): Promise<Buffer> {
  const { rows } = await pool.query<{ secret: Buffer; database: string }>(
    'select secret, current_database() as database from posthorn.key_checksum',
  );
  const { secret, database } = rows[0]!;
  const cluster = await readSystemIdentifier(pool);
  return createHash('sha256')
    .update('posthorn deployment')
    .update(secret)
    .update(`${cluster}/${database}`)
    .digest();
}

/** Returns an empty text if the server does not let this role read it. */
async function readSystemIdentifier(pool: Pool): Promise<string> {
  try {
    const { rows } = await pool.query<{ id: string }>(
      'select system_identifier::text as id from pg_control_system()',
    );
    return rows[0]!.id;
  } catch (error) {
    if ((error as { code?: string }).code === '42501') return '';
    throw error;
  }
}
