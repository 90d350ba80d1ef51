/** `posthorn archive off`: lets servers delete expired data without an archive. */
import pg from 'pg';
import { type Config, ConfigError } from '../../config/index.ts';
import { hasStaleParts, setArchiveRequired } from '../../postgres/queries/archive.ts';
import { print, printError } from '../print.ts';

export async function turnArchiveOff({
  archiveUrl,
  databaseUrl,
  directDatabaseUrl,
}: Config): Promise<number> {
  if (archiveUrl !== null) {
    printError(
      'POSTHORN_ARCHIVE_URL is still set. Unset it on all servers and restart them, then run this again.',
    );
    return 1;
  }
  const connectionString = directDatabaseUrl ?? databaseUrl;
  if (connectionString === null)
    throw new ConfigError([
      { name: 'DATABASE_URL', message: 'DATABASE_URL is not set. Set it to the database of the servers.' },
    ]);
  const client = new pg.Client({ connectionString, application_name: 'posthorn archive off' });
  await client.connect();
  try {
    if (await hasStaleParts(client))
      printError(
        'Warning: files of the archive contain data that was expunged. Nobody rewrites them while the archive is off.',
      );
    await setArchiveRequired(client, false);
  } finally {
    await client.end();
  }
  print('The archive is off. Servers delete expired data without it.');
  return 0;
}
