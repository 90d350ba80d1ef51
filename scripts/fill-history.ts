/** `npm run fill`: fills a database (DATABASE_URL, or an embedded one) with history. */
import { parseArgs } from 'node:util';
import pg from 'pg';
import { fillAuditLog, fillEndpoints, fillHistory } from '../bench/fill-history.ts';
import { prepareForHistory } from '../bench/history-database.ts';
import { startEmbeddedPostgres } from '../src/postgres/embedded/index.ts';
import { openDirectory } from './open-directory.ts';

const { values } = parseArgs({
  options: {
    deliveries: { type: 'string', default: '5000000' },
    endpoints: { type: 'string', default: '200' },
    days: { type: 'string', default: '28' },
    'data-bytes': { type: 'string', default: '200' },
    'data-dir': { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(
    'npm run fill -- [--deliveries 5000000] [--endpoints 200] [--days 28] [--data-bytes 200] [--data-dir DIR]',
  );
  process.exit(0);
}
const spanMs = Number(values.days) * 86_400_000;
const deliveries = Number(values.deliveries);

const databaseUrl = process.env.DATABASE_URL;
const dataDir = values['data-dir'] ?? (await openDirectory('posthorn-history-'));
const embedded = databaseUrl === undefined ? await startEmbeddedPostgres({ dataDir }) : undefined;
const pool = new pg.Pool({ connectionString: databaseUrl ?? embedded!.connectionString, max: 1 });
pool.on('error', () => {}); // ignore connections that are still closing when the server stops
const query = async <T extends pg.QueryResultRow>(text: string, parameters?: unknown[]): Promise<T[]> =>
  (await pool.query<T>(text, parameters)).rows;
try {
  await prepareForHistory(pool, spanMs);
  await query('set synchronous_commit = off');
  const [row] = await query<{ has_endpoints: boolean }>(
    'select exists (select from posthorn.endpoints) as has_endpoints',
  );
  if (!row!.has_endpoints) await fillEndpoints(query, Number(values.endpoints));
  const startedAt = performance.now();
  await fillHistory(
    query,
    {
      deliveries,
      spanMs,
      perMille: { dead: 10, waiting: 10, discarded: 0.2, skipped: 0.2 },
      attemptsPercent: 10,
      dataBytes: Number(values['data-bytes']),
    },
    (done) => {
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
      process.stderr.write(`\r\u001b[K${done.toLocaleString('en')} deliveries, ${seconds} s`);
    },
  );
  await fillAuditLog(query, Math.ceil(deliveries / 50), spanMs);
  console.log(
    `\n${deliveries.toLocaleString('en')} deliveries in ${databaseUrl === undefined ? dataDir : 'DATABASE_URL'}`,
  );
} finally {
  await pool.end();
  await embedded?.stop();
}
