import { boolean, bytes, choice, duration, text, url } from '../kinds.ts';
import { GIB, HOUR, MIB, SECOND } from './units.ts';

export const relay = {
  relayFrom: url({
    flag: 'from',
    default: null,
    schemes: ['postgres', 'postgresql'],
    secret: true,
    about:
      'Database that `posthorn relay` reads events from (PostgreSQL 13 or later; 14 for messages without a table).',
  }),
  relayMode: choice({
    flag: 'mode',
    of: ['poll', 'cdc'],
    default: 'poll',
    about:
      'How the relay reads: `poll` polls the table, `cdc` follows the write-ahead log (change data capture).',
  }),
  relayName: text({
    flag: 'name',
    default: null,
    maxLength: 200,
    about: "Name of the relay's source in logs and metrics. If unset: host, port and database.",
  }),
  relayTable: text({
    flag: 'table',
    default: 'posthorn_outbox',
    maxLength: 127,
    about: 'Table that the relay reads. Include the schema if it is not on the search path.',
  }),
  relayKeep: boolean({
    flag: 'keep',
    default: false,
    about: 'Keeps published rows in the table with `published_at` set, instead of deleting them.',
  }),
  relaySlot: text({
    flag: 'slot',
    default: null,
    maxLength: 63,
    about: 'Replication slot that the relay follows. If unset: `posthorn_` and the database name.',
  }),
  relayPublication: text({
    flag: 'publication',
    default: 'posthorn_outbox',
    maxLength: 63,
    about: 'Publication that contains the table, for `--mode cdc`.',
  }),
  relayPollMs: duration({
    internal: true,
    default: 100,
    min: 1,
    max: HOUR,
    about: 'Polling interval of an idle relay.',
  }),
  relayReportMs: duration({
    internal: true,
    default: 2 * SECOND,
    min: 50,
    max: 30 * SECOND,
    about: 'How often the relay reports its lag and confirms its position to the source.',
  }),
  relayMaxWalBytes: bytes({
    default: GIB,
    min: MIB,
    max: 1024 * GIB,
    about: 'The relay warns if the source keeps more write-ahead log than this for the slot.',
  }),
};
