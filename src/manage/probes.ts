import type { Clock } from '../domain/clock.ts';
import { idPrefixes, publicId, type Uuid } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import { type Client, inTransaction, type Pool } from '../postgres/database.ts';
import { type DeliveryView, findDelivery } from '../postgres/queries/deliveries.ts';
import { isProbeConflict, markProbe, type ProbeState, readProbeState } from '../postgres/queries/probes.ts';
import type { Actor } from './caller.ts';
import { notFound } from './object-ids.ts';
import { DEFAULT_TEST_EVENT, insertTest } from './test-events.ts';

export interface ProbeDependencies {
  readonly pool: Pool;
  readonly clock: Clock;
  /** A probe was requested: tell the worker that owns its endpoint. */
  readonly wakeProbe: () => void;
}

/** Probes on request: one request, sent at once even while the circuit is open, to see whether the receiver works. */
export class Probes {
  readonly #dependencies: ProbeDependencies;

  constructor(dependencies: ProbeDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Returns the delivery that is sent: the oldest that waits, or else a test event. Throws `conflict` if the endpoint is
   * disabled, deleted, paused or blocked, or if another probe is on its way.
   */
  async request({ caller, audit }: Actor, endpointId: Uuid): Promise<DeliveryView> {
    const { pool, wakeProbe } = this.#dependencies;
    const { deliveryId, tenant } = await inTransaction(pool, async (client) => {
      const state = await readProbeState(client, endpointId, caller.tenant);
      if (state === null) throw notFound('endpoint', endpointId);
      refuseUnlessReady(state);
      const chosen = await this.#choose(client, endpointId, state.tenant);
      await audit.record(client, {
        action: 'endpoint.probe',
        tenant: state.tenant,
        objectId: publicId(idPrefixes.endpoint, endpointId),
        changes: [{ field: 'delivery', after: publicId(idPrefixes.delivery, chosen) }],
      });
      return { deliveryId: chosen, tenant: state.tenant };
    }).catch((error: unknown) => {
      throw isProbeConflict(error) ? probeOnItsWay() : error;
    });
    wakeProbe();
    return (await findDelivery(pool, deliveryId, tenant))!;
  }

  async #choose(client: Client, endpointId: Uuid, tenant: string): Promise<Uuid> {
    const waiting = await markProbe(client, endpointId);
    if (waiting !== null) return waiting;
    // Nothing waits. If a probe was requested meanwhile, the unique index refuses this one.
    const { deliveryId } = await insertTest(client, this.#dependencies.clock, {
      endpointId,
      tenant,
      content: DEFAULT_TEST_EVENT,
      probe: 'always',
    });
    return deliveryId;
  }
}

function refuseUnlessReady({ deleted, enabled, paused, blocked, probing }: ProbeState): void {
  if (deleted) throw new Problem('conflict', 'The endpoint is deleted.');
  if (!enabled) throw new Problem('conflict', 'The endpoint is disabled. Enable it first.');
  if (paused) throw new Problem('conflict', 'The endpoint is paused. Resume it first.');
  if (blocked)
    throw new Problem('conflict', 'A dead letter blocks this FIFO endpoint. Replay or discard it first.');
  if (probing) throw probeOnItsWay();
}

const probeOnItsWay = (): Problem =>
  new Problem('conflict', 'A probe of this endpoint is on its way. Wait for its result.');
