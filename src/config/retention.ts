import { DAY_MS, type RetentionDays, resolveRetention } from '../domain/retention.ts';
import type { Config } from './load.ts';

/** How long data is kept, in days per kind. */
export function retentionOf(config: Config): RetentionDays {
  return resolveRetention({
    events: config.retentionEventsDays,
    payloads: config.retentionPayloadsDays,
    deliveries: config.retentionDeliveriesDays,
    attempts: config.retentionAttemptsDays,
    deadLetters: config.retentionDeadLettersDays,
    audit: config.auditRetentionMs === null ? config.retentionAuditDays : config.auditRetentionMs / DAY_MS,
    statistics: config.retentionStatisticsDays,
  });
}
