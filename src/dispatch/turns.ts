import type { Lane } from './lane.ts';

/**
 * A round robin of ready lanes, tenant by tenant: a tenant with ten thousand endpoints gets as many turns as one with a
 * single endpoint. Maps and sets keep their insertion order, so they serve as queues that contain each entry once.
 */
export class Turns {
  readonly #tenants = new Map<string, Set<Lane>>();

  get isEmpty(): boolean {
    return this.#tenants.size === 0;
  }

  add(lane: Lane): void {
    const { tenant } = lane.endpoint;
    const lanes = this.#tenants.get(tenant);
    if (lanes === undefined) this.#tenants.set(tenant, new Set([lane]));
    else lanes.add(lane);
  }

  remove(lane: Lane): void {
    const { tenant } = lane.endpoint;
    const lanes = this.#tenants.get(tenant);
    if (lanes?.delete(lane) && lanes.size === 0) this.#tenants.delete(tenant);
  }

  /** Removes and returns the lane whose turn it is. The caller adds it again if it still has work. */
  next(): Lane | undefined {
    for (const [tenant, lanes] of this.#tenants) {
      this.#tenants.delete(tenant);
      for (const lane of lanes) {
        lanes.delete(lane);
        if (lanes.size > 0) this.#tenants.set(tenant, lanes);
        return lane;
      }
    }
    return undefined;
  }
}
