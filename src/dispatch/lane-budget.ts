/** How much all lanes of a worker hold in memory together. Each lane updates the counts. */
export interface LaneMemory {
  items: number;
  bytes: number;
}

export interface LaneLimits {
  /** Deliveries of each kind (fresh, retry) that one lane may hold. */
  readonly laneItems: number;
  /** Deliveries that all lanes together may hold. */
  readonly totalItems: number;
  /**
   * Bytes of payload that all lanes together may hold, queued or on the wire. Beyond it, payloads are read just before
   * they are sent, and a slow endpoint gets one request at a time.
   */
  readonly totalBytes: number;
}

/** Lanes with a backlog leave a quarter of the memory to lanes that hold little. */
const SHARE_OF_BACKLOGS = 0.75;
/** A lane with batches may queue more deliveries than others, but fills only half of the memory with their payloads. */
const SHARE_OF_BATCHES = 0.5;
/** A lane with fewer deliveries than this may use the reserved quarter. */
const SMALL_LANE_ITEMS = 20;

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

  /** True if lanes must give back what they cannot send soon. */
  get isTight(): boolean {
    return this.items >= this.#limits.totalItems * SHARE_OF_BACKLOGS;
  }

  /** True if a lane that holds `size` deliveries may take another one. */
  hasRoom(size: number): boolean {
    return !this.isTight || (size < SMALL_LANE_ITEMS && this.items < this.#limits.totalItems);
  }

  /** How many more deliveries a lane that holds `size` may load, if `lanes` lanes load at the same time. At least one. */
  roomFor(size: number, lanes: number): number {
    const { totalItems } = this.#limits;
    const shared = Math.ceil((totalItems * SHARE_OF_BACKLOGS - this.items) / lanes);
    const reserved = Math.min(SMALL_LANE_ITEMS - size, Math.ceil((totalItems - this.items) / lanes));
    return Math.max(1, shared, reserved);
  }

  /** True if the payloads in memory, queued or on the wire, have used up their budget. */
  get isOutOfBytes(): boolean {
    return this.bytes >= this.#limits.totalBytes;
  }

  /** True if a lane that holds `size` deliveries, `queued` of them fresh, may also hold a payload of this many bytes. */
  hasRoomForPayload(bytes: number, size: number, queued: number): boolean {
    const ofBacklogs = queued > this.laneItems ? SHARE_OF_BATCHES : SHARE_OF_BACKLOGS;
    const share = size < SMALL_LANE_ITEMS ? 1 : ofBacklogs;
    return this.bytes + bytes <= this.#limits.totalBytes * share;
  }
}
