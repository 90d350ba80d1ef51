/** Sends again: one delivery, the deliveries of an event, those that an endpoint missed, or many dead letters. */
import { type Clock, latestNowOf } from '../domain/clock.ts';
import { type DeliveryStatus, deliveryStatuses } from '../domain/delivery.ts';
import {
  eventIdOfDelivery,
  idPrefixes,
  parsePublicId,
  publicId,
  timeOfId,
  type Uuid,
} from '../domain/ids.ts';
import { invalidField, Problem } from '../domain/problem.ts';
import { readTime } from '../ingest/index.ts';
import { type Client, inTransaction, type Pool } from '../postgres/database.ts';
import { failureOf } from '../postgres/failures.ts';
import { type DeliveryView, findDelivery, listDeliveriesOfEvent } from '../postgres/queries/deliveries.ts';
import { findEndpoint, findEndpointRecord, findUnavailableEndpoints } from '../postgres/queries/endpoints.ts';
import { findEvent } from '../postgres/queries/events.ts';
import { replayDeliveries } from '../postgres/queries/replay.ts';
import type { Selection } from '../postgres/queries/select-deliveries.ts';
import { eventNotFound } from './archive.ts';
import type { Actor } from './caller.ts';
import { notFound } from './object-ids.ts';
import type { OrderResult, Tasks } from './tasks.ts';

export interface ReplayDependencies {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly tasks: Tasks;
  /** A delivery of this endpoint became due: wake the worker that owns it. */
  readonly wake: (endpointId: Uuid) => void;
}

export interface EventReplay {
  /** Only to these endpoints, by their public ids. */
  readonly endpoint_ids?: readonly string[];
  readonly status?: DeliveryStatus | readonly DeliveryStatus[];
  /** Only count the deliveries. */
  readonly dry_run?: boolean;
}

export interface EndpointReplay {
  /** Accepted at or after, and before, these RFC 3339 times. */
  readonly since?: string;
  readonly until?: string;
  readonly status?: DeliveryStatus | readonly DeliveryStatus[];
  readonly dry_run?: boolean;
}

/** What an endpoint missed: by default, delivered ones are not sent again. */
const MISSED: readonly DeliveryStatus[] = ['dead', 'skipped'];
/** How often to try again if a worker or another replay moved the deliveries at the same moment. */
const MAX_TRIES = 5;
/**
 * The same for one delivery, with growing pauses, two seconds in all: if commits take long, several replays of one
 * delivery meet it in motion again and again.
 */
const MAX_TRIES_OF_ONE = 20;
const PAUSE_STEP_MS = 10;
const PER_STATEMENT = 500;
/** The task of a larger event sends its deliveries in the background. */
const MAX_AT_ONCE = 1_000;
const NO_PAYLOAD = 'The payload of this event has been deleted, so it cannot be sent again.';
const ENDPOINT_DELETED = 'The endpoint of this delivery has been deleted.';
const ENDPOINT_DISABLED = 'The endpoint of this delivery is disabled. Enable it first.';

type WriteRecord = (client: Client) => Promise<void>;

/** `taskId`: the task that replays a large event in the background. Its counts are estimates. */
export interface EventReplayResult {
  readonly deliveries: number;
  readonly skipped: number;
  readonly taskId: Uuid | null;
}

export class Replay {
  readonly #dependencies: ReplayDependencies;

  constructor(dependencies: ReplayDependencies) {
    this.#dependencies = dependencies;
  }

  /** Sends one delivery again, whatever its status. Throws `conflict` if its endpoint is disabled or deleted. */
  async delivery({ caller, audit }: Actor, id: Uuid): Promise<DeliveryView> {
    const { pool, clock, wake } = this.#dependencies;
    for (let tries = 0; tries < MAX_TRIES_OF_ONE; tries += 1) {
      if (tries > 0) await new Promise<void>((resolve) => clock.after(tries * PAUSE_STEP_MS, resolve));
      const found = await findDelivery(pool, id, caller.tenant);
      if (found === null) throw notFound('delivery', id);
      const replayed = await this.#requeue([found], (client) =>
        audit.record(client, {
          action: 'delivery.replay',
          tenant: found.tenant,
          objectId: publicId(idPrefixes.delivery, id),
        }),
      );
      if (replayed > 0) {
        wake(found.endpoint_id);
        return (await findDelivery(pool, id, caller.tenant)) ?? found;
      }
      const endpoint = await findEndpointRecord(pool, found.endpoint_id);
      if (endpoint === null || endpoint.deleted) throw new Problem('conflict', ENDPOINT_DELETED);
      if (!endpoint.enabled) throw new Problem('conflict', ENDPOINT_DISABLED);
      const event = await findEvent(pool, eventIdOfDelivery(id), caller.tenant);
      if (event === null || event.data === null) throw new Problem('conflict', NO_PAYLOAD);
    }
    throw new Problem('unavailable', 'The delivery is changing at this moment. Try again.', {
      retryAfterSeconds: 1,
    });
  }

  /**
   * Sends the deliveries of an event again, in the background if there are many. Those of disabled or deleted endpoints
   * are skipped. Throws `conflict` if the caller names such an endpoint, or if no other endpoint is left.
   */
  async event(
    actor: Actor,
    id: Uuid,
    { endpoint_ids, status, dry_run = false }: EventReplay,
  ): Promise<EventReplayResult> {
    const { caller, audit } = actor;
    const { pool, wake } = this.#dependencies;
    const event = await findEvent(pool, id, caller.tenant);
    if (event === null) throw await eventNotFound(pool, caller, id);
    if (event.data === null) throw new Problem('conflict', NO_PAYLOAD);
    const named = readEndpointIds(endpoint_ids);
    const statuses = toList(status);
    const all = await listDeliveriesOfEvent(pool, id, named, MAX_AT_ONCE + 1);
    if (all.length > MAX_AT_ONCE) return this.#eventInBackground(actor, event, statuses, dry_run);
    const unavailable = await findUnavailableEndpoints(
      pool,
      all.map((delivery) => delivery.endpoint_id),
    );
    if (named !== null) checkNamed(named, all, unavailable);
    const chosen = all.filter(({ status: current }) => statuses === null || statuses.includes(current));
    const sendable = chosen.filter((delivery) => !unavailable.has(delivery.endpoint_id));
    if (dry_run) {
      audit.markUnchanged();
      return { deliveries: sendable.length, skipped: chosen.length - sendable.length, taskId: null };
    }
    if (chosen.length > 0 && sendable.length === 0) throw noEndpointLeft(chosen, unavailable);
    const record: WriteRecord = (client) =>
      audit.record(client, {
        action: 'event.replay',
        tenant: event.tenant,
        objectId: publicId(idPrefixes.event, id),
        changes: [{ field: 'deliveries', after: sendable.length }],
      });
    let count = 0;
    for (let i = 0; i < sendable.length; i += PER_STATEMENT) {
      const chunk = sendable.slice(i, i + PER_STATEMENT);
      // One audit entry for the whole event, written with the first chunk that changes something.
      count += await this.#requeue(chunk, count === 0 ? record : null);
      for (const delivery of chunk) wake(delivery.endpoint_id);
    }
    if (count === 0) audit.markUnchanged();
    return { deliveries: count, skipped: chosen.length - sendable.length, taskId: null };
  }

  async #eventInBackground(
    actor: Actor,
    { id, tenant }: { readonly id: Uuid; readonly tenant: string },
    statuses: readonly DeliveryStatus[] | null,
    isDryRun: boolean,
  ): Promise<EventReplayResult> {
    const selection: Selection = {
      tenant,
      endpointId: null,
      eventId: id,
      statuses: statuses ?? deliveryStatuses,
      type: null,
      reason: null,
      // A worker of an earlier release does not know `eventId`: these keep it from replaying anything else.
      since: timeOfId(id),
      until: timeOfId(id) + 1,
      ids: null,
    };
    const { tasks } = this.#dependencies;
    const audited = { action: 'event.replay', objectId: publicId(idPrefixes.event, id) } as const;
    const order = { kind: 'replay', selection, why: null } as const;
    const { counted, task } = isDryRun
      ? { counted: await tasks.count(actor, selection), task: null }
      : await tasks.create(actor, order, audited);
    const { count, left_out: skipped } = counted;
    return { deliveries: count - skipped, skipped, taskId: task?.id ?? null };
  }

  /** Sends again, in the background, what an endpoint missed. Throws `conflict` if it is disabled. */
  async endpoint(actor: Actor, id: Uuid, order: EndpointReplay): Promise<OrderResult> {
    const { pool, clock, tasks } = this.#dependencies;
    const endpoint = await findEndpoint(pool, id, actor.caller.tenant);
    if (endpoint === null) throw notFound('endpoint', id);
    if (!endpoint.enabled) throw new Problem('conflict', 'The endpoint is disabled. Enable it first.');
    const selection: Selection = {
      tenant: endpoint.tenant,
      endpointId: id,
      statuses: toList(order.status) ?? MISSED,
      type: null,
      reason: null,
      since: readTime('since', order.since),
      // Events accepted from now on are not part of the replay.
      until: Math.min(readTime('until', order.until) ?? Number.POSITIVE_INFINITY, clock.now()),
      ids: null,
    };
    return tasks.request(
      actor,
      { kind: 'replay', selection, why: null, dryRun: order.dry_run ?? false },
      { action: 'endpoint.replay', objectId: publicId(idPrefixes.endpoint, id) },
    );
  }

  /** Sends the selected dead letters again, in the background. */
  deadLetters(
    actor: Actor,
    order: { readonly selection: Selection; readonly why: string | null; readonly dryRun: boolean },
  ): Promise<OrderResult> {
    return this.#dependencies.tasks.request(
      actor,
      { kind: 'replay', ...order },
      { action: 'dead_letter.replay' },
    );
  }

  /**
   * Puts deliveries back into the queue and returns how many. Two replays of the same deliveries may deadlock, because
   * they lock rows in different orders: the one that PostgreSQL aborts tries again.
   */
  async #requeue(deliveries: readonly DeliveryView[], record: WriteRecord | null): Promise<number> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await inTransaction(this.#dependencies.pool, async (client) => {
          const { size } = await replayDeliveries(client, deliveries, latestNowOf(this.#dependencies.clock));
          if (size > 0) await record?.(client);
          return size;
        });
      } catch (error) {
        if (tries >= MAX_TRIES || failureOf(error) !== 'conflict') throw error;
      }
    }
  }
}

type UnavailableEndpoints = Awaited<ReturnType<typeof findUnavailableEndpoints>>;

/** A caller who names endpoints expects all of them to be served: if one cannot be, nothing is sent. */
function checkNamed(
  named: readonly Uuid[],
  deliveries: readonly DeliveryView[],
  unavailable: UnavailableEndpoints,
): void {
  const endpoints = new Set(deliveries.map((delivery) => delivery.endpoint_id));
  for (const [index, id] of named.entries()) {
    const path = `endpoint_ids[${index}]`;
    if (!endpoints.has(id))
      throw invalidField(path, 'has no delivery of this event: remove it from the list');
    const why = unavailable.get(id);
    if (why === 'deleted')
      throw invalidField(path, 'is a deleted endpoint: remove it from the list', 'conflict');
    if (why === 'disabled')
      throw invalidField(path, 'is a disabled endpoint: enable it, or remove it from the list', 'conflict');
  }
}

function noEndpointLeft(deliveries: readonly DeliveryView[], unavailable: UnavailableEndpoints): Problem {
  const reasons = new Set(deliveries.map((delivery) => unavailable.get(delivery.endpoint_id)));
  if (deliveries.length === 1)
    return new Problem('conflict', reasons.has('deleted') ? ENDPOINT_DELETED : ENDPOINT_DISABLED);
  if (!reasons.has('disabled'))
    return new Problem('conflict', 'All endpoints of these deliveries have been deleted.');
  return new Problem(
    'conflict',
    reasons.has('deleted')
      ? 'All endpoints of these deliveries are disabled or deleted. Enable one first.'
      : 'All endpoints of these deliveries are disabled. Enable one first.',
  );
}

function readEndpointIds(ids: readonly string[] | undefined): Uuid[] | null {
  if (ids === undefined) return null;
  return ids.map((text, index) => {
    const id = parsePublicId(idPrefixes.endpoint, text);
    if (id === null) throw invalidField(`endpoint_ids[${index}]`, 'must be an endpoint id (ep_…)');
    return id;
  });
}

function toList(
  status: DeliveryStatus | readonly DeliveryStatus[] | undefined,
): readonly DeliveryStatus[] | null {
  if (status === undefined) return null;
  return typeof status === 'string' ? [status] : status;
}
