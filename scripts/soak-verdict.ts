/** Decides whether the figures of a soak test stayed flat. */

/** One minute of a soak test. */
export interface SoakMinute {
  /** Resident memory of all processes of the node. */
  readonly rssMb: number;
  /** Connections of the node to PostgreSQL. */
  readonly connections: number;
  /** Open file handles of all processes of the node. */
  readonly handles: number;
  readonly acceptP50Ms: number;
  readonly acceptP99Ms: number;
  /** From the request that published an event to its arrival at the receiver. */
  readonly deliverP50Ms: number;
  readonly deliverP99Ms: number;
  /** Size of the tables whose rows are deleted soon after they were written, with their indexes. */
  readonly boundedTablesMb: number;
}

export interface SoakFinding {
  readonly figure: keyof SoakMinute;
  /** Medians of the first and the last third of the minutes after the warm-up. */
  readonly first: number;
  readonly last: number;
  readonly isFlat: boolean;
}

/** A figure may grow by `share`, and always by `least`, because small figures vary. */
const ALLOWED: Readonly<Record<keyof SoakMinute, { readonly share: number; readonly least: number }>> = {
  rssMb: { share: 0.15, least: 32 },
  connections: { share: 0.1, least: 3 },
  handles: { share: 0.1, least: 10 },
  acceptP50Ms: { share: 0.5, least: 5 },
  acceptP99Ms: { share: 0.5, least: 50 },
  deliverP50Ms: { share: 0.5, least: 5 },
  deliverP99Ms: { share: 0.5, least: 50 },
  boundedTablesMb: { share: 0.5, least: 10 },
};

/** The heap grows to its working size in the first minutes: a fifth of the run does not count. */
const WARM_UP_SHARE = 0.2;
const MIN_MINUTES = 5;

/** Null: the run was too short to tell. */
export function judgeSoak(minutes: readonly SoakMinute[]): SoakFinding[] | null {
  if (minutes.length < MIN_MINUTES) return null;
  const counted = minutes.slice(Math.ceil(minutes.length * WARM_UP_SHARE));
  const third = Math.max(1, Math.floor(counted.length / 3));
  return (Object.keys(ALLOWED) as (keyof SoakMinute)[]).map((figure) => {
    const values = counted.map((minute) => minute[figure]);
    const first = median(values.slice(0, third));
    const last = median(values.slice(-third));
    const { share, least } = ALLOWED[figure];
    return { figure, first, last, isFlat: last - first <= Math.max(least, first * share) };
  });
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)]!;
}
