import type { Clock } from '../domain/clock.ts';
import { deliveryIdOf, idPrefixes, newEventId, publicId, type Uuid } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import { inTransaction, type Pool } from '../postgres/database.ts';
import { type DeliveryView, findDelivery } from '../postgres/queries/deliveries.ts';
import { findEndpoint } from '../postgres/queries/endpoints.ts';
import { insertTestEvent } from '../postgres/queries/events.ts';
import type { Actor } from './caller.ts';
import { notFound } from './object-ids.ts';

export interface TestEventDependencies {
  readonly pool: Pool;
  readonly clock: Clock;
  /** A delivery of this endpoint became due: wake the worker that owns it. */
  readonly wake: (endpointId: Uuid) => void;
}

export interface TestEvent {
  readonly type: string;
  /** JSON text, sent byte for byte. */
  readonly data: string;
}

/** Events for one endpoint only, whatever it subscribes to: to see whether they arrive. */
export class TestEvents {
  readonly #dependencies: TestEventDependencies;

  constructor(dependencies: TestEventDependencies) {
    this.#dependencies = dependencies;
  }

  /** Returns the delivery. Throws `conflict` if the endpoint is disabled. */
  async send({ caller, audit }: Actor, endpointId: Uuid, { type, data }: TestEvent): Promise<DeliveryView> {
    const { pool, clock, wake } = this.#dependencies;
    const endpoint = await findEndpoint(pool, endpointId, caller.tenant);
    if (endpoint === null) throw notFound('endpoint', endpointId);
    const { tenant } = endpoint;
    const id = newEventId(clock.now());
    const deliveryId = deliveryIdOf(id, 0);
    await inTransaction(pool, async (client) => {
      const isInserted = await insertTestEvent(client, {
        id,
        deliveryId,
        endpointId,
        tenant,
        type,
        data: Buffer.from(data),
        options: { endpoint_ids: [endpointId] },
      });
      if (!isInserted) throw new Problem('conflict', 'The endpoint is disabled. Enable it first.');
      await audit.record(client, {
        action: 'endpoint.test',
        tenant,
        objectId: publicId(idPrefixes.endpoint, endpointId),
        changes: [{ field: 'event', after: publicId(idPrefixes.event, id) }],
      });
    });
    wake(endpointId);
    return (await findDelivery(pool, deliveryId, tenant))!;
  }
}
