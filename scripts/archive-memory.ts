/** `node scripts/archive-memory.ts --rows 10000000 [--skip-query]`: the memory of the archive's commands on a partition with that many events. */
import { rm } from 'node:fs/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { measureArchiveMemory } from '../bench/archive-memory.ts';
import { fillExpired } from '../bench/fill-expired.ts';
import { openPool, startPostgres } from '../bench/harness.ts';
import { migrate } from '../src/postgres/migrate.ts';
import { openDirectory } from './open-directory.ts';

const { values } = parseArgs({
  options: {
    'skip-query': { type: 'boolean', default: false },
    rows: { type: 'string', default: '10000000' },
    'data-bytes': { type: 'string', default: '300' },
  },
});
const rows = Number(values.rows);
const postgres = await startPostgres();
const folder = await openDirectory('posthorn-archive-memory-');
try {
  const pool = openPool(postgres.url, 1);
  await migrate(pool);
  await pool.end();
  const startedAt = performance.now();
  const partition = await fillExpired(
    postgres.query,
    { rows, dataBytes: Number(values['data-bytes']) },
    (text) => process.stderr.write(`\r\u001b[K${text}`),
  );
  console.log(
    `\nfilled ${rows.toLocaleString('en')} rows in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`,
  );
  for await (const { command, peakMb, seconds } of measureArchiveMemory({
    query: postgres.query,
    databaseUrl: postgres.url,
    archiveUrl: pathToFileURL(folder).href,
    program: fileURLToPath(new URL('../bin/posthorn.js', import.meta.url)),
    partition,
    skipsQuery: values['skip-query'],
  }))
    console.log(
      `posthorn ${command.padEnd(15)} ${peakMb.toFixed(0).padStart(5)} MB  ${seconds.toFixed(1).padStart(7)} s`,
    );
} finally {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
}
