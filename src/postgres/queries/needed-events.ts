/**
 * SQL: whether something still needs the event `alias`: a delivery that waits or is dead, or deliveries of a large fan-out that
 * are not written yet. The functions of migration 0030 have the same conditions.
 */
export const isEventNeeded = (alias: string): string => `
  (exists (select from posthorn.queue q where q.id between ${alias}.id and posthorn.last_delivery_id(${alias}.id))
   or exists (select from posthorn.dead_letters d where d.id between ${alias}.id and posthorn.last_delivery_id(${alias}.id))
   or exists (select from posthorn.fan_out_slices s where s.event_id = ${alias}.id))`;

/** SQL: whether the row with this key was restored from the archive, and its time has not ended. */
export const isRestored = (key: string): string =>
  `exists (select from posthorn.restored_ranges g where ${key} between g.first_id and g.last_id and g.until > now())`;

/** SQL: whether the history contains a delivery of the event `alias`. */
export const hasHistory = (alias: string): string =>
  `exists (select from posthorn.deliveries h where h.id between ${alias}.id and posthorn.last_delivery_id(${alias}.id))`;
