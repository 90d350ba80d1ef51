/** `npm run schema:snapshot`: migrates an empty database and writes its schema to src/postgres/schema.snapshot.txt. */
import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { startEmbeddedPostgres } from '../src/postgres/embedded/index.ts';
import { migrate } from '../src/postgres/migrate.ts';
import { describeSchema } from '../test/support/schema.ts';
import { openDirectory } from './open-directory.ts';

const SNAPSHOT = new URL('../src/postgres/schema.snapshot.txt', import.meta.url);

const directory = await openDirectory('posthorn-schema-');
const server = await startEmbeddedPostgres({ dataDir: path.join(directory, 'data') });
const pool = new pg.Pool({ connectionString: server.connectionString, max: 1 });
pool.on('error', () => {}); // ignore connections that are still closing when the server stops
try {
  await migrate(pool);
  await writeFile(SNAPSHOT, await describeSchema(server.connectionString));
  console.log('Wrote src/postgres/schema.snapshot.txt');
} finally {
  await pool.end();
  await server.stop();
  await rm(directory, { recursive: true, force: true });
}
