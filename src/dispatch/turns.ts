import { TurnoverMap } from '../domain/turnover-map.ts';
import { UniqueQueue } from '../domain/unique-queue.ts';
import type { Lane } from './lane.ts';

/**
 * A round robin of ready lanes, tenant by tenant: a tenant with ten thousand endpoints gets as many turns as one with a
 * single endpoint.
 */
export class Turns {
  readonly #tenants = new UniqueQueue<string>();
  readonly #lanes = new TurnoverMap<string, UniqueQueue<Lane>>();

  get isEmpty(): boolean {
    return this.#tenants.size === 0;
  }

  add(lane: Lane): void {
    const { tenant } = lane.endpoint;
    let lanes = this.#lanes.get(tenant);
    if (lanes === undefined) {
      lanes = new UniqueQueue();
      this.#lanes.set(tenant, lanes);
      this.#tenants.add(tenant);
    }
    lanes.add(lane);
  }

  remove(lane: Lane): void {
    const { tenant } = lane.endpoint;
    const lanes = this.#lanes.get(tenant);
    if (!lanes?.delete(lane) || lanes.size > 0) return;
    this.#lanes.delete(tenant);
    this.#tenants.delete(tenant);
  }

  /** Removes and returns the lane whose turn it is. The caller adds it again if it still has work. */
  next(): Lane | undefined {
    const tenant = this.#tenants.shift();
    if (tenant === undefined) return undefined;
    const lanes = this.#lanes.get(tenant)!;
    const lane = lanes.shift();
    if (lanes.size > 0) this.#tenants.add(tenant);
    else this.#lanes.delete(tenant);
    return lane;
  }
}
