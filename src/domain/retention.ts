/** How long data is kept. Pure. */

/** The tables that are divided into partitions, in the order in which their partitions expire. */
export const partitionedTables = ['deliveries', 'attempts', 'events'] as const;
export type PartitionedTable = (typeof partitionedTables)[number];

export const DAY_MS = 86_400_000;

/** Days per kind of data. 0: forever. */
export interface RetentionDays {
  readonly events: number;
  readonly payloads: number;
  readonly deliveries: number;
  readonly attempts: number;
  /** 0: until a user replays or discards the dead letter. */
  readonly deadLetters: number;
  readonly audit: number;
  /** Statistics by the hour. Finer ones are kept for hours. */
  readonly statistics: number;
}

/** The settings as the operator gave them. Null: kept as long as the kind that it belongs to. */
export interface RetentionSettings extends Omit<RetentionDays, 'payloads' | 'deliveries' | 'attempts'> {
  readonly payloads: number | null;
  readonly deliveries: number | null;
  readonly attempts: number | null;
}

/** Payloads and deliveries follow the events, attempts follow the deliveries. */
export function resolveRetention(settings: RetentionSettings): RetentionDays {
  const deliveries = settings.deliveries ?? settings.events;
  return {
    ...settings,
    payloads: settings.payloads ?? settings.events,
    deliveries,
    attempts: settings.attempts ?? deliveries,
  };
}

/** True if data that is kept for `days` expires no later than data that is kept for `otherDays`. */
export const expiresFirst = (days: number, otherDays: number): boolean =>
  otherDays === 0 || (days !== 0 && days <= otherDays);

/** Data from before this time has expired. Null: it never does. */
export const cutoffOf = (days: number, nowMs: number): number | null =>
  days === 0 ? null : nowMs - days * DAY_MS;
