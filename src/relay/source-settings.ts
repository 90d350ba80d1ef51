import { type Config, ConfigError, maskUrl } from '../config/index.ts';
import type { OutboxNames } from '../postgres/queries/outbox-table.ts';
import { databaseAddressOf } from '../postgres/source-database.ts';

/** The database that a relay reads from. */
export interface SourceSettings {
  readonly url: string;
  /** The URL without its password. */
  readonly shownUrl: string;
  /** Identifies the source in metrics and in the ids of its events. */
  readonly name: string;
  readonly names: OutboxNames;
}

export function sourceOf(config: Config): SourceSettings {
  const url = config.relayFrom;
  if (url === null) {
    throw new ConfigError([
      {
        name: '--from',
        message: '--from (POSTHORN_RELAY_FROM) is not set: set it to the database that has the events',
      },
    ]);
  }
  const { host, port, database } = databaseAddressOf(url);
  return {
    url,
    shownUrl: maskUrl(url),
    name: config.relayName ?? `${host}:${port}/${database}`,
    names: {
      table: config.relayTable,
      publication: config.relayPublication,
      slot:
        config.relaySlot ?? `posthorn_${database.toLowerCase().replaceAll(/[^a-z0-9_]/g, '_')}`.slice(0, 63),
    },
  };
}
