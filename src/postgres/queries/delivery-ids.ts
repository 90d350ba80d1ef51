/**
 * SQL for what `src/domain/ids.ts` computes: a delivery's id is its event's id with an ordinal in the last bits. Ids of
 * version 8 have an ordinal of 20 bits (five digits), ids of version 7 one of 16 bits (four digits).
 */

const isVersion8 = (id: string): string => `substr(${id}::text, 15, 1) = '8'`;

/** The id of the event of a delivery. `id` is an SQL expression of type uuid. */
export const eventIdSql = (id: string): string =>
  `(case when ${isVersion8(id)} then left(${id}::text, 31) || '00000' else left(${id}::text, 32) || '0000' end)::uuid`;

/** The last id that a delivery of an event can have. `eventId` is an SQL expression of type uuid. */
export const lastDeliveryIdSql = (eventId: string): string =>
  `(case when ${isVersion8(eventId)} then left(${eventId}::text, 31) || 'fffff' else left(${eventId}::text, 32) || 'ffff' end)::uuid`;
