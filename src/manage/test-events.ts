import type { Clock } from '../domain/clock.ts';
import { deliveryIdOf, idPrefixes, newEventId, publicId, type Uuid } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import { type Client, inTransaction, type Pool, type Queryable } from '../postgres/database.ts';
import { type DeliveryView, findDelivery } from '../postgres/queries/deliveries.ts';
import { findEndpoint } from '../postgres/queries/endpoints.ts';
import { insertTestEvent, type TestProbe } from '../postgres/queries/events.ts';
import { isProbeConflict } from '../postgres/queries/probes.ts';
import type { Change } from './audit-trail.ts';
import type { Actor } from './caller.ts';
import { notFound } from './object-ids.ts';

export interface TestEventDependencies {
  readonly pool: Pool;
  readonly clock: Clock;
  /** A delivery of this endpoint became due: wake the worker that owns it. */
  readonly wake: (endpointId: Uuid) => void;
  /** A probe was requested: tell the worker that owns its endpoint. */
  readonly wakeProbe: () => void;
}

export interface TestEvent {
  readonly type: string;
  /** JSON text, sent byte for byte. */
  readonly data: string;
}

/** A reserved type, so that nobody mistakes a test for a real event. */
export const DEFAULT_TEST_EVENT: TestEvent = {
  type: 'posthorn.test',
  data: '{"message":"This is a test event."}',
};

/** Events for one endpoint only, whatever it subscribes to: to see whether they arrive. */
export class TestEvents {
  readonly #dependencies: TestEventDependencies;

  constructor(dependencies: TestEventDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Returns the delivery. It is sent even while the circuit is open, unless another probe is on its way. Throws `conflict`
   * if the endpoint is disabled.
   */
  async send(actor: Actor, endpointId: Uuid, content: TestEvent): Promise<DeliveryView> {
    const endpoint = await findEndpoint(this.#dependencies.pool, endpointId, actor.caller.tenant);
    if (endpoint === null) throw notFound('endpoint', endpointId);
    return this.sendTo(actor, endpoint, content, {
      action: 'endpoint.test',
      objectId: publicId(idPrefixes.endpoint, endpointId),
    });
  }

  /**
   * The same, to an endpoint or notifier that the caller may see. `recordAs` says how the audit log names it. `check` runs first,
   * in the same transaction, and throws if the test is refused.
   */
  async sendTo(
    { audit }: Actor,
    { id: endpointId, tenant }: { readonly id: Uuid; readonly tenant: string },
    content: TestEvent,
    recordAs: Pick<Change, 'action' | 'objectId'>,
    check: (client: Client) => Promise<void> = async () => {},
  ): Promise<DeliveryView> {
    const { pool, wake, wakeProbe } = this.#dependencies;
    const insert = (probe: TestProbe): Promise<Uuid> =>
      inTransaction(pool, async (client) => {
        await check(client);
        const { eventId, deliveryId } = await insertTest(client, this.#dependencies.clock, {
          endpointId,
          tenant,
          content,
          probe,
        });
        await audit.record(client, {
          ...recordAs,
          tenant,
          changes: [{ field: 'event', after: publicId(idPrefixes.event, eventId) }],
        });
        return deliveryId;
      });
    const deliveryId = await insert('if_open').catch((error: unknown) => {
      if (!isProbeConflict(error)) throw error;
      return insert('never');
    });
    wakeProbe();
    wake(endpointId);
    return (await findDelivery(pool, deliveryId, tenant))!;
  }
}

/** Stores a test event. Throws `conflict` if the endpoint is disabled. */
export async function insertTest(
  client: Queryable,
  clock: Clock,
  test: {
    readonly endpointId: Uuid;
    readonly tenant: string;
    readonly content: TestEvent;
    readonly probe: TestProbe;
  },
): Promise<{ eventId: Uuid; deliveryId: Uuid }> {
  const { endpointId, tenant, content, probe } = test;
  const id = newEventId(clock.now());
  const deliveryId = deliveryIdOf(id, 0);
  const event = {
    id,
    deliveryId,
    endpointId,
    tenant,
    type: content.type,
    data: Buffer.from(content.data),
    options: { endpoint_ids: [endpointId], test: true },
  };
  if (!(await insertTestEvent(client, event, probe)))
    throw new Problem('conflict', 'The endpoint is disabled. Enable it first.');
  return { eventId: id, deliveryId };
}
