import { boolean, duration, integer, number, url } from '../kinds.ts';
import { DAY, HOUR, SECOND } from './units.ts';

const MAX_RETENTION_DAYS = 36_500;

/** A whole number of days. 0: forever. */
const days = <D extends number | null>(kind: string, fallback: D, about: string) =>
  integer({
    env: `POSTHORN_RETENTION_${kind.toUpperCase()}`,
    flag: `retention-${kind.toLowerCase().replaceAll('_', '-')}`,
    default: fallback,
    min: 0,
    max: MAX_RETENTION_DAYS,
    about: `${about} 0 keeps them forever.`,
  });

/** See docs/retention.md. */
export const retention = {
  retentionEventsDays: days('EVENTS', 90, 'Days that events are kept.'),
  retentionPayloadsDays: days(
    'PAYLOADS',
    null,
    'Days that the `data` of events is kept. If unset: as long as the events.',
  ),
  retentionDeliveriesDays: days(
    'DELIVERIES',
    null,
    'Days that finished deliveries are kept. If unset: as long as the events.',
  ),
  retentionAttemptsDays: days(
    'ATTEMPTS',
    null,
    'Days that attempts are kept. If unset: as long as the deliveries.',
  ),
  retentionDeadLettersDays: integer({
    env: 'POSTHORN_RETENTION_DEAD_LETTERS',
    flag: 'retention-dead-letters',
    default: 0,
    min: 0,
    max: MAX_RETENTION_DAYS,
    about:
      'Days after which a dead letter is discarded, with an operational event. 0 keeps each one until somebody replays or discards it.',
  }),
  retentionAuditDays: days('AUDIT', 365, 'Days that audit log entries are kept.'),
  retentionStatisticsDays: days(
    'STATISTICS',
    400,
    'Days that statistics by the hour are kept. `POSTHORN_STATS_MINUTES_MS` is for those by the minute.',
  ),
  statsMinutesMs: duration({
    default: 2 * HOUR,
    min: 2 * HOUR,
    max: 35 * DAY,
    about:
      'How long statistics by the minute are kept, for example `30d`. Each endpoint and each event type of a tenant adds a row for every minute in which it is busy (docs/statistics.md).',
  }),
  archiveUrl: url({
    default: null,
    schemes: ['file', 's3'],
    about:
      'Where expired data is archived before it is deleted: `file:///directory` or `s3://bucket/prefix`. Set it on every server. If no server ever had one, expired data is deleted without an archive (docs/retention.md#archive).',
  }),
  archivePathStyle: boolean({
    default: null,
    about:
      'Whether the bucket is a part of the path instead of the host name. If unset: true if `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL` is set.',
  }),
  archiveMaxBusy: number({
    default: 0.3,
    min: 0.01,
    max: 1,
    about:
      'Maximum share of the time in which the archive process of a server works. It rests for the remaining time, so that events keep their speed, and does not rest while it is behind (docs/retention.md#archive). 1: full speed.',
  }),
  restoreDays: integer({
    default: 7,
    min: 1,
    max: MAX_RETENTION_DAYS,
    about: 'Days that events stay in the database after they were restored from the archive.',
  }),
  expungeSettleMs: duration({
    internal: true,
    default: 30 * SECOND,
    min: 0,
    max: HOUR,
    about:
      'Minimum time for which the deletion of a tenant looks for new rows. Processes that do not know of the deletion yet, and requests on the wire, may still write some.',
  }),
};
