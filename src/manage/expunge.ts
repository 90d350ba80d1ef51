/** Deletes data on request, for privacy. What is expunged cannot be restored. */
import { idPrefixes, publicId, type Uuid } from '../domain/ids.ts';
import { inTransaction, type Pool } from '../postgres/database.ts';
import { lockEvent } from '../postgres/queries/events.ts';
import { expungePayload } from '../postgres/queries/expunge-payload.ts';
import { type Actor, nameOfCaller } from './caller.ts';
import { notFound } from './object-ids.ts';

export interface ExpungeDependencies {
  readonly pool: Pool;
  /** A delivery of this endpoint ended: wake the worker that owns it. */
  readonly wake: (endpointId: Uuid) => void;
}

export class Expunge {
  readonly #dependencies: ExpungeDependencies;

  constructor(dependencies: ExpungeDependencies) {
    this.#dependencies = dependencies;
  }

  /** Deletes the payload of an event. Repeating it changes nothing. */
  async payload({ caller, audit }: Actor, id: Uuid): Promise<void> {
    const { pool, wake } = this.#dependencies;
    const endpointIds = await inTransaction(pool, async (client) => {
      const event = await lockEvent(client, id, caller.tenant);
      if (event === null) throw notFound('event', id);
      if (event.options?.expunged_at !== undefined) {
        audit.nothingChanged();
        return [];
      }
      await audit.record(client, {
        action: 'event.expunge',
        tenant: event.tenant,
        objectId: publicId(idPrefixes.event, id),
      });
      return expungePayload(client, event, nameOfCaller(caller));
    });
    for (const endpointId of endpointIds) wake(endpointId);
  }
}
