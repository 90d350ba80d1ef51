import { idPrefixes, publicId, type Uuid } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import { inTransaction, type Pool } from '../postgres/database.ts';
import { discardDeadLetter, restoreDeadLetter } from '../postgres/queries/dead-letters.ts';
import { type DeliveryView, findDelivery } from '../postgres/queries/deliveries.ts';
import type { Selection } from '../postgres/queries/select-deliveries.ts';
import { type Actor, type Caller, recordedNameOf } from './caller.ts';
import { notFound } from './object-ids.ts';
import type { OrderResult, Tasks } from './tasks.ts';

export interface DeadLetterDependencies {
  readonly pool: Pool;
  readonly tasks: Tasks;
  /** A FIFO lane may be waiting for this dead letter: wake the worker that owns the endpoint. */
  readonly wake: (endpointId: Uuid) => void;
  /** How long a discard can be undone. */
  readonly discardUndoMs: number;
}

export class DeadLetters {
  readonly #dependencies: DeadLetterDependencies;

  constructor(dependencies: DeadLetterDependencies) {
    this.#dependencies = dependencies;
  }

  /** Throws `conflict` if the delivery is not dead. */
  async discard({ caller, audit }: Actor, id: Uuid, why: string | null): Promise<DeliveryView> {
    const { pool, wake } = this.#dependencies;
    const before = await this.#find(caller, id);
    await inTransaction(pool, async (client) => {
      const isDiscarded =
        before.status === 'dead' && (await discardDeadLetter(client, id, recordedNameOf(caller), why));
      if (!isDiscarded) throw new Problem('conflict', 'Only a dead delivery can be discarded.');
      await audit.record(client, {
        action: 'delivery.discard',
        tenant: before.tenant,
        objectId: publicId(idPrefixes.delivery, id),
        changes: why === null ? [] : [{ field: 'why', after: why }],
      });
    });
    wake(before.endpoint_id);
    return (await findDelivery(pool, id, caller.tenant)) ?? before;
  }

  /** Undoes a discard. Throws `conflict` if the delivery is not discarded, or was discarded too long ago. */
  async restore({ caller, audit }: Actor, id: Uuid): Promise<DeliveryView> {
    const { pool, wake, discardUndoMs } = this.#dependencies;
    const before = await this.#find(caller, id);
    if (before.status !== 'discarded') throw new Problem('conflict', 'The delivery is not discarded.');
    await inTransaction(pool, async (client) => {
      if (!(await restoreDeadLetter(client, id, discardUndoMs)))
        throw new Problem('conflict', 'It was discarded too long ago. It can still be replayed.');
      await audit.record(client, {
        action: 'delivery.restore',
        tenant: before.tenant,
        objectId: publicId(idPrefixes.delivery, id),
      });
    });
    wake(before.endpoint_id);
    return (await findDelivery(pool, id, caller.tenant)) ?? before;
  }

  /** Discards the selected dead letters, in the background. */
  discardMany(
    actor: Actor,
    order: { readonly selection: Selection; readonly why: string | null; readonly dryRun: boolean },
  ): Promise<OrderResult> {
    return this.#dependencies.tasks.request(
      actor,
      { kind: 'discard', ...order },
      { action: 'dead_letter.discard' },
    );
  }

  async #find(caller: Caller, id: Uuid): Promise<DeliveryView> {
    const delivery = await findDelivery(this.#dependencies.pool, id, caller.tenant);
    if (delivery === null) throw notFound('delivery', id);
    return delivery;
  }
}
