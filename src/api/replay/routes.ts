/** Sending again: one delivery, an event's deliveries, or all of an endpoint's that fit. */
import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { type DeliveryStatus, deliveryStatuses } from '../../domain/delivery.ts';
import { deliveryRangeOfEvent, idPrefixes, parsePublicId, type Uuid } from '../../domain/ids.ts';
import { invalidField, Problem } from '../../domain/problem.ts';
import { readTime } from '../../ingest/index.ts';
import { type Client, inTransaction } from '../../postgres/database.ts';
import { failureOf } from '../../postgres/failures.ts';
import { type DeliveryView, deliveriesOfEvent, findDelivery } from '../../postgres/queries/deliveries.ts';
import { endpointsOff, findEndpoint } from '../../postgres/queries/endpoints.ts';
import { findEvent } from '../../postgres/queries/events.ts';
import { replayDeliveries } from '../../postgres/queries/replay.ts';
import { deliveryId, deliveryNotFound } from '../deliveries/routes.ts';
import { DeliverySchema, showDelivery } from '../deliveries/view.ts';
import type { ApiContext } from '../dependencies.ts';
import { endpointId, endpointNotFound } from '../endpoints/routes.ts';
import { eventId, eventNotFound } from '../events/routes.ts';
import { ListFilters } from '../http/pagination.ts';
import { idParams } from '../openapi/describe.ts';
import { CountSchema, orderTask, TaskSchema } from '../tasks/routes.ts';

const Statuses = Type.Union([
  Type.Enum([...deliveryStatuses]),
  Type.Array(Type.Enum([...deliveryStatuses]), { minItems: 1, maxItems: deliveryStatuses.length }),
]);
const EventReplay = Type.Object(
  {
    endpoint_ids: Type.Optional(Type.Array(Type.String({ maxLength: 64 }), { minItems: 1, maxItems: 1000 })),
    status: Type.Optional(Statuses),
  },
  { additionalProperties: false, title: 'EventReplay', examples: [{ status: ['dead', 'skipped'] }] },
);
const Replayed = Type.Object(
  {
    deliveries: Type.Integer({ description: 'How many are sent again.' }),
    skipped: Type.Integer({
      description: 'How many are not, because their endpoint is disabled or was deleted.',
    }),
  },
  { title: 'Replayed', examples: [{ deliveries: 2, skipped: 0 }] },
);
const EndpointReplay = Type.Object(
  {
    since: ListFilters.since,
    until: ListFilters.until,
    status: Type.Optional(Statuses),
    dry_run: Type.Optional(Type.Boolean({ description: 'Only count.' })),
  },
  {
    additionalProperties: false,
    title: 'EndpointReplay',
    examples: [{ since: '2027-01-31T00:00:00Z', status: ['dead', 'skipped'] }],
  },
);
type ById = { Params: { id: string } };

/** What did not get through: nobody wants everything again by default. */
const NOT_DELIVERED: readonly DeliveryStatus[] = ['dead', 'skipped'];
/** How often to look again for deliveries that were moved by somebody else between two looks. */
const LOOKS = 5;
const PER_STATEMENT = 500;
const ENDPOINT_DELETED = 'Its endpoint has been deleted.';
const ENDPOINT_DISABLED = 'Its endpoint is disabled. Enable it first.';

export function replayRoutes(context: ApiContext): FastifyPluginAsync {
  const { pool, endpoints, clock, wake } = context;

  return async (server) => {
    server.post<ById>(
      '/deliveries/:id/replay',
      {
        schema: {
          operationId: 'replayDelivery',
          summary: 'Send a delivery again',
          description: 'Whatever its status. One that waits becomes due now.',
          tags: ['Deliveries'],
          params: idParams('dlv', 'delivery'),
          response: { 202: DeliverySchema },
          problems: {
            conflict: 'The endpoint is disabled or was deleted.',
            unavailable: 'The delivery is just being moved. Try again after `Retry-After` seconds.',
          },
        },
      },
      async (request, reply) => {
        const id = deliveryId(request.params.id);
        const { tenant } = request.caller;
        for (let looks = 0; looks < LOOKS; looks += 1) {
          const found = await findDelivery(pool, id, tenant);
          if (found === null) throw deliveryNotFound(request.params.id);
          const record = (client: Client) =>
            request.audit.record(client, { tenant: found.tenant, objectId: request.params.id });
          if (await replayAll([found], record)) {
            wake(found.endpoint_id);
            const view = (await findDelivery(pool, id, tenant)) ?? found;
            return reply.code(202).send(showDelivery(view, endpoints.get(view.endpoint_id)));
          }
          const endpoint = await findEndpoint(pool, found.endpoint_id, null);
          if (endpoint === null) throw new Problem('conflict', ENDPOINT_DELETED);
          if (!endpoint.enabled) throw new Problem('conflict', ENDPOINT_DISABLED);
        }
        throw busy();
      },
    );

    server.post<ById & { Body: Static<typeof EventReplay> }>(
      '/events/:id/replay',
      {
        schema: {
          operationId: 'replayEvent',
          summary: 'Send an event again',
          description:
            'All of its deliveries, or those that fit. Those of an endpoint that is disabled or was deleted are left out, unless you name it: then nothing is sent again.',
          tags: ['Events'],
          params: idParams('evt', 'event'),
          body: EventReplay,
          response: { 202: Replayed },
          problems: {
            conflict:
              'An endpoint that is named is disabled or was deleted; or that is so of all endpoints of the deliveries that fit.',
          },
        },
      },
      async (request, reply) => {
        const event = await findEvent(pool, eventId(request.params.id), request.caller.tenant);
        if (event === null) throw eventNotFound(request.params.id);
        const named = readEndpointIds(request.body.endpoint_ids);
        const statuses = readStatuses(request.body.status);
        const [first, last] = deliveryRangeOfEvent(event.id);
        const all = await deliveriesOfEvent(pool, first, last);
        const off = await endpointsOff(
          pool,
          all.map((delivery) => delivery.endpoint_id),
        );
        if (named !== null) checkNamed(named, all, off);
        const chosen = all.filter(
          (delivery) =>
            (named === null || named.includes(delivery.endpoint_id)) &&
            (statuses === null || statuses.includes(delivery.status)),
        );
        const fitting = chosen.filter((delivery) => !off.has(delivery.endpoint_id));
        if (chosen.length > 0 && fitting.length === 0) throw nothingToSendTo(chosen, off);
        const record = (client: Client) =>
          request.audit.record(client, {
            tenant: event.tenant,
            objectId: request.params.id,
            changes: [{ field: 'deliveries', after: fitting.length }],
          });
        let count = 0;
        for (let i = 0; i < fitting.length; i += PER_STATEMENT) {
          const chunk = fitting.slice(i, i + PER_STATEMENT);
          // One entry for all of them, with the first that are moved: there is none for what nobody moved.
          count += await replayAll(chunk, count === 0 ? record : null);
          for (const delivery of chunk) wake(delivery.endpoint_id);
        }
        if (count === 0) request.audit.nothingChanged();
        return reply.code(202).send({ deliveries: count, skipped: chosen.length - fitting.length });
      },
    );

    server.post<ById & { Body: Static<typeof EndpointReplay> }>(
      '/endpoints/:id/replay',
      {
        schema: {
          operationId: 'replayEndpoint',
          summary: 'Send again what an endpoint did not get',
          description: 'In the background. By default what is dead or was skipped.',
          tags: ['Endpoints'],
          params: idParams('ep', 'endpoint'),
          body: EndpointReplay,
          response: { 200: CountSchema, 202: TaskSchema },
          problems: { conflict: 'The endpoint is disabled.' },
        },
      },
      async (request, reply) => {
        const endpoint = await findEndpoint(pool, endpointId(request.params.id), request.caller.tenant);
        if (endpoint === null) throw endpointNotFound(request.params.id);
        if (!endpoint.enabled) throw new Problem('conflict', 'The endpoint is disabled. Enable it first.');
        const { since, until, status, dry_run = false } = request.body;
        return orderTask(context, request, reply, {
          kind: 'replay',
          dryRun: dry_run,
          why: null,
          selection: {
            tenant: endpoint.tenant,
            endpointId: endpoint.id,
            statuses: readStatuses(status) ?? NOT_DELIVERED,
            type: null,
            reason: null,
            since: readTime('since', since),
            // What is accepted from now on is not part of it.
            until: Math.min(readTime('until', until) ?? Number.POSITIVE_INFINITY, clock.now()),
            ids: null,
          },
        });
      },
    );
  };

  /** Two replays of the same rows may have locked them in opposite order: then once more. */
  async function replayAll(
    deliveries: readonly DeliveryView[],
    record: ((client: Client) => Promise<void>) | null,
  ): Promise<number> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await inTransaction(pool, async (client) => {
          const { size } = await replayDeliveries(client, deliveries);
          if (size > 0) await record?.(client);
          return size;
        });
      } catch (error) {
        if (tries >= LOOKS || failureOf(error) !== 'conflict') throw error;
      }
    }
  }
}

const busy = () =>
  new Problem('unavailable', 'The delivery is just being moved. Try again.', { retryAfterSeconds: 1 });

type Off = Awaited<ReturnType<typeof endpointsOff>>;

/** Whoever names an endpoint means it: rather nothing at all than only the others. */
function checkNamed(named: readonly Uuid[], deliveries: readonly DeliveryView[], off: Off): void {
  const places = new Set(deliveries.map((delivery) => delivery.endpoint_id));
  for (const [index, id] of named.entries()) {
    const path = `endpoint_ids[${index}]`;
    if (!places.has(id)) throw invalidField(path, 'the event did not go to this endpoint: leave it out');
    const why = off.get(id);
    if (why === 'deleted')
      throw invalidField(path, 'this endpoint has been deleted: leave it out', 'conflict');
    if (why === 'disabled')
      throw invalidField(path, 'this endpoint is disabled: enable it first, or leave it out', 'conflict');
  }
}

function nothingToSendTo(deliveries: readonly DeliveryView[], off: Off): Problem {
  const reasons = new Set(deliveries.map((delivery) => off.get(delivery.endpoint_id)));
  if (deliveries.length === 1)
    return new Problem('conflict', reasons.has('deleted') ? ENDPOINT_DELETED : ENDPOINT_DISABLED);
  if (!reasons.has('disabled')) return new Problem('conflict', 'All of its endpoints have been deleted.');
  return new Problem(
    'conflict',
    reasons.has('deleted')
      ? 'All of its endpoints are disabled or deleted. Enable one first.'
      : 'All of its endpoints are disabled. Enable one first.',
  );
}

function readEndpointIds(ids: readonly string[] | undefined): Uuid[] | null {
  if (ids === undefined) return null;
  return ids.map((text, index) => {
    const id = parsePublicId(idPrefixes.endpoint, text);
    if (id === null) throw invalidField(`endpoint_ids[${index}]`, 'is not an endpoint id (ep_…)');
    return id;
  });
}

function readStatuses(status: string | readonly string[] | undefined): DeliveryStatus[] | null {
  if (status === undefined) return null;
  return (typeof status === 'string' ? [status] : [...status]) as DeliveryStatus[];
}
