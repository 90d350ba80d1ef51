/** Deletes data on request, for privacy. What is expunged cannot be restored. */
import type { Clock } from '../domain/clock.ts';
import { idPrefixes, newId, publicId, type Uuid } from '../domain/ids.ts';
import { invalidField, tenantBeingDeleted } from '../domain/problem.ts';
import { DAY_MS } from '../domain/retention.ts';
import { type Client, inTransaction, type Pool } from '../postgres/database.ts';
import { findArchivedDay, hasStaleParts, isInStalePart } from '../postgres/queries/archive.ts';
import { lockEvent } from '../postgres/queries/events.ts';
import { expungePayload, waitForRestore } from '../postgres/queries/expunge-payload.ts';
import {
  closeTenant,
  countTenantEvents,
  hasOpenExpunge,
  WHOLE_TENANT,
} from '../postgres/queries/expunge-tenant.ts';
import { createTask } from '../postgres/queries/tasks.ts';
import { lockTenant } from '../postgres/queries/tenants.ts';
import { insertTombstone } from '../postgres/queries/tombstones.ts';
import { eventNotFound } from './archive.ts';
import { type Actor, recordedNameOf } from './caller.ts';
import type { OrderResult } from './tasks.ts';
import { tenantNotFound } from './tenants.ts';

export interface ExpungeDependencies {
  readonly pool: Pool;
  readonly clock: Clock;
  /** A delivery of this endpoint ended: wake the worker that owns it. */
  readonly wake: (endpointId: Uuid) => void;
  /** How long the lease of a worker lasts: after this time every worker that may send knows that a payload was expunged. */
  readonly leaseMs: number;
  /** How long Kafka may hold a record, in milliseconds. Null: Kafka is not configured. */
  readonly readKafkaLifetime: (() => Promise<number>) | null;
  readonly onKafkaProblem: (error: unknown) => void;
}

const MAX_COUNTED = 100_000;
/** The first request to expunge an event may still wait for leases if the event was expunged within this time. */
const JUST_NOW_MS = 60_000;
/** The archive is rewritten by its next run. If that fails, an operational event and an alert report it. */
const REWRITE_WITHIN_MS = DAY_MS;
/** The end of the year 9999: later times have no RFC 3339 form. */
const MAX_TIME_MS = Date.UTC(10_000, 0) - 1;

export interface Expunged {
  /** Until when the archive may contain it. Null: the archive does not contain it. */
  readonly archiveUntil: number | null;
}

export class Expunge {
  readonly #dependencies: ExpungeDependencies;

  constructor(dependencies: ExpungeDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Deletes the payload of an event. Repeating it changes nothing. If deliveries waited, resolves only when no worker can send
   * the payload any more.
   */
  async payload({ caller, audit }: Actor, id: Uuid): Promise<Expunged> {
    const { pool, clock, wake } = this.#dependencies;
    let wasExpungedJustNow = false;
    const endpointIds = await inTransaction(pool, async (client) => {
      await waitForRestore(client);
      const event = await lockEvent(client, id, caller.tenant);
      if (event === null) return this.#archivedPayload(client, { caller, audit }, id);
      if (event.options?.expunged_at !== undefined) {
        audit.markUnchanged();
        wasExpungedJustNow = event.options.expunged_at > clock.now() - JUST_NOW_MS;
        return [];
      }
      await audit.record(client, {
        action: 'event.expunge',
        tenant: event.tenant,
        objectId: publicId(idPrefixes.event, id),
      });
      return expungePayload(client, event, recordedNameOf(caller));
    });
    for (const endpointId of endpointIds) wake(endpointId);
    if (endpointIds.length > 0 || wasExpungedJustNow) await this.#waitForLeases();
    return { archiveUntil: await this.#archiveUntil(id) };
  }

  /** Afterwards every lease from before the expunge has expired, and every later renewal has returned the id of the event. */
  #waitForLeases(): Promise<void> {
    const { clock, leaseMs } = this.#dependencies;
    return new Promise((resolve) => clock.after(leaseMs, resolve));
  }

  /** Only an admin key may do this: the tenant of an archived event is known only when its file is read. */
  async #archivedPayload(client: Client, { caller, audit }: Actor, id: Uuid): Promise<Uuid[]> {
    if (caller.scope !== 'admin' || (await findArchivedDay(client, id, null)) === null)
      throw await eventNotFound(client, caller, id);
    await audit.record(client, {
      action: 'event.expunge',
      tenant: null,
      objectId: publicId(idPrefixes.event, id),
    });
    await insertTombstone(client, id);
    return [];
  }

  /** Until when the archive may contain what was deleted of tenants. Null: no file is left to rewrite. */
  async archiveUntil(): Promise<number | null> {
    const { pool, clock } = this.#dependencies;
    return (await hasStaleParts(pool)) ? clock.now() + REWRITE_WITHIN_MS : null;
  }

  /**
   * Until when the topics that Posthorn reads may hold records of a tenant, as an RFC 3339 time. `unlimited`: they keep records
   * forever. `unknown`: Kafka does not answer. Null: Kafka is not configured.
   */
  async kafkaUntil(): Promise<string | null> {
    const { clock, readKafkaLifetime, onKafkaProblem } = this.#dependencies;
    if (readKafkaLifetime === null) return null;
    try {
      const until = clock.now() + (await readKafkaLifetime());
      return until <= MAX_TIME_MS ? new Date(until).toISOString() : 'unlimited';
    } catch (error) {
      onKafkaProblem(error);
      return 'unknown';
    }
  }

  async #archiveUntil(id: Uuid): Promise<number | null> {
    const { pool, clock } = this.#dependencies;
    return (await isInStalePart(pool, id)) ? clock.now() + REWRITE_WITHIN_MS : null;
  }

  /**
   * Deletes everything of a tenant, in the background. `confirm` must repeat the id. Throws `conflict` while it runs already;
   * if it failed, a new task continues. One audit entry and a tombstone remain.
   */
  async tenant(
    { caller, audit }: Actor,
    id: string,
    { confirm, dryRun }: { readonly confirm: string | undefined; readonly dryRun: boolean },
  ): Promise<OrderResult> {
    const { pool, clock } = this.#dependencies;
    if (!dryRun && confirm !== id)
      throw invalidField('confirm', 'must be the id of the tenant, because this cannot be undone');
    return inTransaction(pool, async (client) => {
      if ((await lockTenant(client, id)) === null) throw tenantNotFound();
      const count = await countTenantEvents(client, id, MAX_COUNTED);
      if (dryRun) {
        audit.markUnchanged();
        return { counted: { count, more: count === MAX_COUNTED, left_out: 0 } };
      }
      if (!(await closeTenant(client, id)) && (await hasOpenExpunge(client, id)))
        throw tenantBeingDeleted(id);
      // Record no tenant: the expunge deletes the audit entries of the tenant, and this one must stay.
      await audit.record(client, { action: 'tenant.expunge', tenant: null, objectId: id });
      const task = await createTask(client, {
        id: newId(clock.now()),
        kind: 'expunge',
        selection: { ...WHOLE_TENANT, tenant: id },
        why: null,
        total: count,
        tenant: null,
        created_by: recordedNameOf(caller),
      });
      return { task };
    });
  }
}
