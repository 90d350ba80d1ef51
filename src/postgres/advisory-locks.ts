/** The advisory locks that Posthorn takes in its database. Every number is used once. */
export const ADVISORY_LOCKS = {
  migrations: 7_283_640_001,
  partitions: 7_283_640_002,
  upkeep: 7_283_640_003,
  statistics: 7_283_640_004,
  operationalEvents: 7_283_640_005,
  inboxes: 7_283_640_006,
  fanOuts: 7_283_640_007,
  archive: 7_283_640_008,
  restores: 7_283_640_009,
  confirmationMails: 7_283_640_011,
  /** A seed: every tenant has a lock of its own. */
  notifierTests: 7_283_640_012,
  /** A seed: every tenant has a lock of its own. */
  tenantTasks: 7_283_640_013,
  kafkaLeases: 7_283_640_041,
} as const;
