/** Waiting deliveries by id and by endpoint. Readers see a row from the moment of its commit on. */
import type { Uuid } from '../domain/ids.ts';
import type { QueueRow } from './rows.ts';

type NewRow = Pick<
  QueueRow,
  'id' | 'endpointId' | 'tenant' | 'eventType' | 'seq' | 'visibleAt' | 'fifo' | 'dueAt'
>;

/** A delivery that was just accepted. Its age begins when it is due. */
export const newQueueRow = (row: NewRow): QueueRow => ({
  ...row,
  agesFrom: row.dueAt,
  startedAt: null,
  attempts: 0,
  attemptsBeforeReplay: 0,
  replays: 0,
  carefulStarts: 0,
  trigger: 'auto',
  lastStatusCode: null,
  lastErrorClass: null,
});

export class QueueTable {
  readonly #now: () => number;
  readonly #byId = new Map<Uuid, QueueRow>();
  readonly #byEndpoint = new Map<Uuid, Map<Uuid, QueueRow>>();

  constructor(now: () => number) {
    this.#now = now;
  }

  get size(): number {
    return this.#byId.size;
  }

  has(id: Uuid): boolean {
    return this.#byId.has(id);
  }

  /** Undefined if there is no such row, or it is not committed yet. */
  get(id: Uuid): QueueRow | undefined {
    const row = this.#byId.get(id);
    return row !== undefined && row.visibleAt <= this.#now() ? row : undefined;
  }

  /** The committed rows of an endpoint, in no particular order. */
  of(endpointId: Uuid): QueueRow[] {
    const rows = this.#byEndpoint.get(endpointId);
    if (rows === undefined) return [];
    const now = this.#now();
    return [...rows.values()].filter((row) => row.visibleAt <= now);
  }

  all(): QueueRow[] {
    const now = this.#now();
    return [...this.#byId.values()].filter((row) => row.visibleAt <= now);
  }

  add(row: QueueRow): void {
    this.#byId.set(row.id, row);
    let rows = this.#byEndpoint.get(row.endpointId);
    if (rows === undefined) {
      rows = new Map();
      this.#byEndpoint.set(row.endpointId, rows);
    }
    rows.set(row.id, row);
  }

  delete(row: QueueRow): void {
    this.#byId.delete(row.id);
    this.#byEndpoint.get(row.endpointId)!.delete(row.id);
  }
}
