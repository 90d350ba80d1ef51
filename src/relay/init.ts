/** What `posthorn relay init` creates in the source, or prints. Each statement can be run again. */
import type { Pool } from '../postgres/database.ts';
import { type OutboxNames, outboxTableSql, replicationSql } from '../postgres/queries/outbox-table.ts';
import type { RelayMode } from '../postgres/queries/relay-sources.ts';
import { explainSource } from './check-source.ts';

export function initStatements(names: OutboxNames, mode: RelayMode): string[] {
  return [...outboxTableSql(names), ...(mode === 'cdc' ? replicationSql(names) : [])];
}

export async function runInit(
  source: Pool,
  shownUrl: string,
  names: OutboxNames,
  mode: RelayMode,
): Promise<void> {
  for (const statement of initStatements(names, mode)) {
    // Each statement commits by itself: a slot cannot be created in a transaction that has written.
    await source.query(statement).catch((error: unknown) => {
      throw explainSource(error, shownUrl);
    });
  }
}
