/** Is everything there that a relay needs? Says what is missing, and the statement that helps. */
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
    refuse(`${shownUrl} is a standby, which nobody can write to.`, 'Give the address of the primary.');
  if (table === null && mode === 'poll')
    refuse(
      `There is no table ${names.table} in the database ${facts.database} that ${user} can see.`,
      'Make it with `posthorn relay init --from …`, or name another one with --table.',
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
      `wal_level of the source is ${facts.walLevel}: its log does not say what changed.`,
      "alter system set wal_level = 'logical'; and restart PostgreSQL. Or use --mode poll, which needs no setting.",
    );
  if (!facts.mayReplicate)
    refuse(
      `${facts.user} may not follow the log of the source.`,
      `alter role ${facts.user} replication; (on a managed service: grant rds_replication or its like.) Or use --mode poll.`,
    );
  if (!facts.hasPublication)
    refuse(
      `There is no publication ${publication} in the database ${facts.database}.`,
      'Make it with `posthorn relay init --mode cdc --from …`, or name another one with --publication.',
    );
}

const REFUSALS: Readonly<Record<string, string>> = {
  '28P01': 'Check user and password in --from.',
  '28000':
    'Check the user in --from, and whether pg_hba.conf lets it in from here (and whether it asks for TLS).',
  '3D000': 'Correct the name of the database in --from.',
  '42501': 'Give the user the right, or run this command as one that has it.',
  '53300': 'The source has no connection left. A relay needs up to four.',
  '53400': 'Raise max_replication_slots of the source and restart it, or drop a slot that nobody uses.',
  '57P03': 'The source is starting or stopping. Try again in a moment.',
};

/** An error of the source in words, if it can be put so. */
export function explainSource(error: unknown, shownUrl: string): unknown {
  const first = error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error;
  if (!(first instanceof Error) || first instanceof RelayError) return error;
  const { code, severity, syscall } = first as { code?: string; severity?: string; syscall?: string };
  const refusal = code === undefined ? undefined : REFUSALS[code];
  if (severity !== undefined && refusal !== undefined)
    return new RelayError(`The source ${shownUrl} refused: ${first.message}.`, refusal, {
      final: false,
      cause: error,
    });
  if (severity !== undefined) return error;
  // The driver's own complaints have no code.
  if (syscall === undefined && code === undefined && !/timeout|terminated|password/i.test(first.message))
    return error;
  return new RelayError(
    `The source ${shownUrl} cannot be reached (${code ?? first.message}).`,
    'Check that it runs and that --from (POSTHORN_RELAY_FROM) is right.',
    { final: false, cause: error },
  );
}
