/** What the rules to disable an endpoint read, from the store of the simulation: docs/lifecycle.md. */
import type { DisabledReason } from '../src/domain/endpoint.ts';
import type { Uuid } from '../src/domain/ids.ts';
import type { DeadLetter } from '../src/memory/rows.ts';
import type { DeadRateLimits, EndpointDisabler } from '../src/ports/upkeep-store.ts';
import type { World } from '../test/simulation/world.ts';

interface Ending {
  readonly at: number;
  readonly isDead: boolean;
}

const DAY_MS = 86_400_000;

export class EndingsStore implements EndpointDisabler {
  readonly #world: World;
  readonly #endings = new Map<Uuid, Ending[]>();
  /** Dead letters that were recorded. A dead letter that is replayed and dies again is another ending. */
  readonly #recorded = new Map<Uuid, number>();

  constructor(world: World) {
    this.#world = world;
  }

  recordDelivered(endpointId: Uuid, at: number): void {
    this.#add(endpointId, { at, isDead: false });
  }

  recordDead({ id, endpointId, deadAt }: DeadLetter): void {
    if (this.#recorded.get(id) === deadAt) return;
    this.#recorded.set(id, deadAt);
    this.#add(endpointId, { at: deadAt, isDead: true });
  }

  forget(deliveryId: Uuid): void {
    this.#recorded.delete(deliveryId);
  }

  #add(endpointId: Uuid, ending: Ending): void {
    let endings = this.#endings.get(endpointId);
    if (endings === undefined) {
      endings = [];
      this.#endings.set(endpointId, endings);
    }
    endings.push(ending);
  }

  async findByDeadRate({ deadRate, minDeliveries, minMs }: DeadRateLimits): Promise<Uuid[]> {
    const { store, time } = this.#world;
    const now = time.now();
    const dying: Uuid[] = [];
    for (const [id, all] of this.#endings) {
      const { endpoint, enabledSince } = store.endpoints.get(id)!;
      const since = Math.max(now - DAY_MS, enabledSince ?? 0);
      const endings = all.filter(({ at }) => at > since);
      this.#endings.set(id, endings);
      if (!endpoint.enabled || endings.length < minDeliveries) continue;
      if (deadShare(endings) <= deadRate) continue;
      const deaths = endings.filter(({ isDead }) => isDead).map(({ at }) => at);
      if (Math.max(...deaths) - Math.min(...deaths) < minMs) continue;
      if (deadShare(endings.filter(({ at }) => at > now - minMs)) > deadRate) dying.push(id);
    }
    return dying;
  }

  async findFailing(failingMs: number): Promise<Uuid[]> {
    const { store, time } = this.#world;
    return [...store.health].flatMap(([id, { failingSince }]) =>
      failingSince !== null &&
      failingSince <= time.now() - failingMs &&
      store.endpoints.get(id)!.endpoint.enabled
        ? [id]
        : [],
    );
  }

  async disable(id: Uuid, reason: DisabledReason): Promise<boolean> {
    if (!this.#world.store.endpoints.get(id)!.endpoint.enabled) return false;
    this.#world.change(id, { enabled: false, disabledReason: reason });
    return true;
  }
}

/** Null endings have no share. */
function deadShare(endings: readonly Ending[]): number {
  return endings.length === 0 ? 0 : endings.filter(({ isDead }) => isDead).length / endings.length;
}
