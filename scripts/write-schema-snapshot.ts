/** `npm run schema:snapshot`: migrates an empty database and writes down what came of it. */
import { chmod, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { startEmbeddedPostgres } from '../src/postgres/embedded/index.ts';
import { migrate } from '../src/postgres/migrate.ts';
import { describeSchema } from '../test/support/schema.ts';
import { openDirectory } from './open-directory.ts';

const SNAPSHOT = new URL('../src/postgres/schema.snapshot.txt', import.meta.url);

const directory = await openDirectory('posthorn-schema-');
// PostgreSQL's user has to get through, where root runs this.
await chmod(directory, 0o755);
const server = await startEmbeddedPostgres({ dataDir: path.join(directory, 'data') });
const pool = new pg.Pool({ connectionString: server.connectionString, max: 1 });
pool.on('error', () => {}); // connections that are still closing when the server stops
try {
  await migrate(pool);
  await writeFile(SNAPSHOT, await describeSchema(server.connectionString));
  console.log('Wrote src/postgres/schema.snapshot.txt');
} finally {
  await pool.end();
  await server.stop();
  await rm(directory, { recursive: true, force: true });
}
