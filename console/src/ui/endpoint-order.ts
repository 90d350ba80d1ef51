/** Filtering and sorting of endpoints. The API lists them newest first; the page orders those that it has loaded. */
import type { Endpoint } from '@posthorn/client';

/** How urgent each state is, by its name in `describeEndpointState`. */
const URGENCY = ['Circuit open', 'Failing', 'Probing', 'Paused', 'Disabled', 'Idle', 'Healthy'];

export const ENDPOINT_STATES = [['', 'Any state'], ...URGENCY.map((name) => [name, name] as const)] as const;

export type SortKey = 'name' | 'state' | 'success' | 'p95' | 'waiting' | 'dead';

export interface Sort {
  readonly key: SortKey;
  readonly isDescending: boolean;
}

const KEYS: readonly SortKey[] = ['name', 'state', 'success', 'p95', 'waiting', 'dead'];

/** Reads `waiting` (ascending) or `-waiting`; null: the order of the API. */
export function readSort(text: string): Sort | null {
  const isDescending = text.startsWith('-');
  const key = KEYS.find((each) => each === (isDescending ? text.slice(1) : text));
  return key === undefined ? null : { key, isDescending };
}

interface Described {
  readonly endpoint: Endpoint;
  readonly name: string;
  readonly state: string;
}

const VALUES: Record<SortKey, (row: Described) => string | number | null> = {
  name: ({ name }) => name.toLowerCase(),
  state: ({ state }) => URGENCY.indexOf(state),
  success: ({ endpoint }) => endpoint.health.success_rate,
  p95: ({ endpoint }) => endpoint.health.p95_ms,
  waiting: ({ endpoint }) => endpoint.health.waiting,
  dead: ({ endpoint }) => endpoint.health.dead,
};

/** Endpoints without a value are last in both directions. */
export function sortEndpoints(rows: readonly Described[], sort: Sort | null): readonly Described[] {
  if (sort === null) return rows;
  const readValue = VALUES[sort.key];
  const sign = sort.isDescending ? -1 : 1;
  return rows.toSorted((a, b) => {
    const [first, second] = [readValue(a), readValue(b)];
    if (first === null || second === null) return Number(first === null) - Number(second === null);
    return first === second ? 0 : first < second ? -sign : sign;
  });
}
