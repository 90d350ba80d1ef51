/** Checks that the source has everything a relay needs. Throws a `RelayError` with the statement that helps. */
import type { Pool } from '../postgres/database.ts';
import { type OutboxNames, readSourceFacts, type SourceFacts } from '../postgres/queries/outbox-table.ts';
import type { RelayMode } from '../postgres/queries/relay-sources.ts';
import { RelayError } from './relay-error.ts';

const OLDEST_VERSION = 130_000;

export async function checkSource(
  pool: Pool,
  shownUrl: string,
  names: Pick<OutboxNames, 'table' | 'publication'>,
  mode: RelayMode,
): Promise<SourceFacts> {
  const facts = await readSourceFacts(pool, names).catch((error: unknown) => {
    throw explainSource(error, shownUrl);
  });
  const refuse = (message: string, hint: string): never => {
    throw new RelayError(message, hint, { final: true });
  };
  const { table, user } = facts;
  if (facts.serverVersion < OLDEST_VERSION)
    refuse(
      `${shownUrl} is PostgreSQL ${Math.trunc(facts.serverVersion / 10_000)}.`,
      'A relay needs 13 or later at its source.',
    );
  if (facts.isStandby)
    refuse(`${shownUrl} is a standby, which is read-only.`, 'Give the address of the primary.');
  if (table === null && mode === 'poll')
    refuse(
      `There is no table ${names.table} in the database ${facts.database} that ${user} can see.`,
      'Create it with `posthorn relay init --from …`, or name another table with --table.',
    );
  if (facts.missingColumns.length > 0)
    refuse(
      `The table ${names.table} has no column ${facts.missingColumns.join(', ')}.`,
      '`posthorn relay init --print` shows the table that a relay reads.',
    );
  if (facts.missingPrivileges.length > 0)
    refuse(
      `${user} may not ${facts.missingPrivileges.join(', ')} on ${names.table}.`,
      `grant select, update, delete on ${names.table} to ${user};`,
    );
  if (mode === 'cdc') checkReplication(facts, names, refuse);
  return facts;
}

function checkReplication(
  facts: SourceFacts,
  { publication }: Pick<OutboxNames, 'publication'>,
  refuse: (message: string, hint: string) => void,
): void {
  if (facts.walLevel !== 'logical')
    refuse(
      `wal_level of the source is ${facts.walLevel}: its log does not contain what changed.`,
      "alter system set wal_level = 'logical'; and restart PostgreSQL. Or use --mode poll, which needs no setting.",
    );
  if (!facts.mayReplicate)
    refuse(
      `${facts.user} may not follow the log of the source.`,
      `alter role ${facts.user} replication; (on a managed service: grant rds_replication or the like.) Or use --mode poll.`,
    );
  if (!facts.hasPublication)
    refuse(
      `There is no publication ${publication} in the database ${facts.database}.`,
      'Create it with `posthorn relay init --mode cdc --from …`, or name another publication with --publication.',
    );
}

/** Hints by SQLSTATE. */
const HINTS: Readonly<Record<string, string>> = {
  '28P01': 'Check user and password in --from.',
  '28000':
    'Check the user in --from, and whether pg_hba.conf allows it to connect from here (perhaps only with TLS).',
  '3D000': 'Correct the name of the database in --from.',
  '42501': 'Grant the privilege to the user, or run this command as a user that has it.',
  '53300': 'The source has no connection left. A relay needs up to four.',
  '53400': 'Raise max_replication_slots of the source and restart it, or drop an unused slot.',
  '57P03': 'The source is starting or stopping. Try again in a moment.',
};

/** Returns a `RelayError` that explains an error of the source, or the error itself if it is not a known one. */
export function explainSource(error: unknown, shownUrl: string): unknown {
  const first = error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error;
  if (!(first instanceof Error) || first instanceof RelayError) return error;
  const { code, severity, syscall } = first as { code?: string; severity?: string; syscall?: string };
  const hint = code === undefined ? undefined : HINTS[code];
  if (severity !== undefined && hint !== undefined)
    return new RelayError(`The source ${shownUrl} refused: ${first.message}.`, hint, {
      final: false,
      cause: error,
    });
  if (severity !== undefined) return error;
  // The driver's own errors have no code.
  if (syscall === undefined && code === undefined && !/timeout|terminated|password/i.test(first.message))
    return error;
  return new RelayError(
    `The source ${shownUrl} cannot be reached (${code ?? first.message}).`,
    'Check that it runs and that --from (POSTHORN_RELAY_FROM) is right.',
    { final: false, cause: error },
  );
}
