/** What `posthorn relay init` creates in the source, or prints. Each statement can be run again. */
import type { Config } from '../config/index.ts';
import { type OutboxNames, outboxTableSql, replicationSql } from '../postgres/queries/outbox-table.ts';
import type { RelayMode } from '../postgres/queries/relay-sources.ts';
import { openSourcePool } from '../postgres/source-database.ts';
import { checkSource, explainSource } from './check-source.ts';
import { sourceOf } from './source-settings.ts';

/** Creates what the relay needs in the source. Returns the address to show, without its password. */
export async function initRelay(config: Config): Promise<string> {
  const { url, names, shownUrl } = sourceOf(config);
  const source = openSourcePool({ connectionString: url, onIdleError: () => {} });
  try {
    // Each statement commits by itself: a slot cannot be created in a transaction that has written.
    for (const statement of initStatements(names, config.relayMode)) {
      await source.query(statement).catch((error: unknown) => {
        throw explainSource(error, shownUrl);
      });
    }
    await checkSource(source, shownUrl, names, config.relayMode);
    return shownUrl;
  } finally {
    await source.end();
  }
}

/** The statements that `initRelay` runs, as text. */
export function initSql(config: Config): string {
  const { names } = sourceOf(config);
  return initStatements(names, config.relayMode)
    .map((statement) => `${statement};`)
    .join('\n\n');
}

export function initStatements(names: OutboxNames, mode: RelayMode): string[] {
  return [...outboxTableSql(names), ...(mode === 'cdc' ? replicationSql(names) : [])];
}
