/** What all lanes of a worker hold in memory together. Each lane keeps the counts up to date. */
export interface LaneMemory {
  items: number;
  bytes: number;
}

export interface LaneLimits {
  /** Deliveries of each kind (fresh, retry) that one lane may hold. */
  readonly laneItems: number;
  /** Deliveries that all lanes together may hold. */
  readonly totalItems: number;
  /** Bytes of payload that all lanes together may hold. Beyond it, payloads are read just before they are sent. */
  readonly totalBytes: number;
}

/** Bounds the memory of all lanes. Deliveries that do not fit stay in the store. */
export class LaneBudget implements LaneMemory {
  items = 0;
  bytes = 0;
  readonly laneItems: number;
  readonly #limits: LaneLimits;

  constructor(limits: LaneLimits) {
    this.#limits = limits;
    this.laneItems = limits.laneItems;
  }

  get freeItems(): number {
    return this.#limits.totalItems - this.items;
  }

  get hasRoom(): boolean {
    return this.items < this.#limits.totalItems;
  }

  hasRoomForPayload(bytes: number): boolean {
    return this.bytes + bytes <= this.#limits.totalBytes;
  }
}
