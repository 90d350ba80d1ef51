import { type FilterNode, MAX_STEPS_PER_FILTER, matchesFilter } from '../../domain/filter.ts';
import type { EventHead } from '../../postgres/queries/search-events.ts';

/** True if the filter selects a stored event. `data` null: the payload was deleted, or the filter does not need it. */
export function matchesEvent(
  filter: FilterNode,
  { type, idempotency_key, options }: Pick<EventHead, 'type' | 'idempotency_key' | 'options'>,
  data: Buffer | null,
): boolean {
  const subject = {
    type,
    channels: options?.channels ?? [],
    schemaVersion: options?.schema_version ?? null,
    idempotencyKey: idempotency_key,
    data: data === null ? undefined : (JSON.parse(data.toString()) as unknown),
  };
  return matchesFilter(filter, subject, { stepsLeft: MAX_STEPS_PER_FILTER });
}
