import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { buildBatchBody, buildBody } from '../../deliver/index.ts';
import { type ConversionNote, readConversionNote } from '../../domain/conversion-header.ts';
import { resolveEndpoint } from '../../domain/endpoint-config.ts';
import type { EventContent } from '../../domain/event.ts';
import { eventIdOfDelivery, parsePublicId, type Uuid } from '../../domain/ids.ts';
import { Problem } from '../../domain/problem.ts';
import { notFound, readObjectId } from '../../manage/object-ids.ts';
import type { Pool } from '../../postgres/database.ts';
import { findBatchMembers } from '../../postgres/queries/batches.ts';
import { conversionKeyOf, findConversions } from '../../postgres/queries/conversions.ts';
import { findDelivery, listAttempts } from '../../postgres/queries/deliveries.ts';
import { findEndpointRecord } from '../../postgres/queries/endpoints.ts';
import { loadEvents } from '../../postgres/queries/load-events.ts';
import { batchOfRequest } from '../../postgres/sent-headers.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { answerOf, Id } from '../openapi/describe.ts';

const API_VERSION = 'posthorn-api-version';
const SENT_PREFIX = 'posthorn-sent-';
/**
 * Headers that the answer repeats under their own name. The endpoint's owner chooses most others, and some of those
 * (`set-cookie`, `x-accel-redirect`) would instruct the reader's browser or proxy.
 */
const REPEATED =
  /^(?:(?:webhook|posthorn)-.+|x-webhook-signature|stripe-signature|x-hub-signature-256|user-agent)$/;
const MAX_ATTEMPTS = 1000;

const AttemptParams = Type.Object({
  id: Id('dlv', 'The id of the delivery.'),
  number: Type.String({
    pattern: '^[1-9][0-9]{0,8}$',
    description: 'The number of the attempt: 1 is the first.',
    examples: ['1'],
  }),
});

/** Headers of e-mails can have any character. HTTP sends one byte per character, so these are UTF-8. */
const toHeaderValue = (value: string): string =>
  /[\u0100-\uffff]/.test(value) ? Buffer.from(value, 'utf8').toString('latin1') : value;

/**
 * Shows a past request as an answer: its body, rebuilt byte for byte from the stored event, and the headers that were
 * sent with it (signature, timestamp), without credentials. Headers of the endpoint's owner get the prefix
 * `posthorn-sent-`.
 */
export function sentRequestRoutes(
  dependencies: Pick<ApiDependencies, 'pool' | 'publicUrl'>,
): FastifyPluginAsync {
  const { pool } = dependencies;
  return async (server) => {
    server.get<{ Params: Static<typeof AttemptParams> }>(
      '/deliveries/:id/attempts/:number/request',
      {
        schema: {
          operationId: 'getSentRequest',
          summary: 'Show the request that was sent',
          description:
            'The answer has the body of the request, byte for byte, and its headers without credentials. `webhook-*`, `posthorn-*`, `user-agent` and the usual signature headers keep their names; every other header is named `posthorn-sent-<name>`.',
          tags: ['Deliveries'],
          params: AttemptParams,
          response: { 200: answerOf('The body as it was sent.', 'application/json', Type.Unknown()) },
        },
      },
      async (request, reply) => {
        const id = readObjectId('delivery', request.params.id);
        const delivery = await findDelivery(pool, id, request.caller.tenant);
        if (delivery === null) throw notFound('delivery', id);
        const attempts = await listAttempts(pool, { first: id, last: id, after: null, limit: MAX_ATTEMPTS });
        const attempt = attempts.findLast(({ number }) => String(number) === request.params.number);
        if (attempt === undefined)
          throw new Problem('not_found', `The delivery has no attempt ${request.params.number}.`);
        const headers = attempt.request_headers;
        const batchId = batchOfRequest(headers);
        const events = await loadSentEvents(pool, id, batchId);
        const record = await findEndpointRecord(pool, delivery.endpoint_id);
        if (events === null || record === null)
          throw new Problem('not_found', 'The payload is no longer stored.');
        // A batch is never converted.
        const sent = await asSent(
          pool,
          id,
          events[0]!,
          batchId === null ? readConversionNote(headers) : null,
        );
        if (sent === null) throw new Problem('not_found', 'The payload is no longer stored.');
        for (const [name, value] of Object.entries(headers))
          void reply.header(REPEATED.test(name) ? name : `${SENT_PREFIX}${name}`, toHeaderValue(value));
        // The endpoint's version may have changed since; the header has the one that was sent.
        const endpoint = { ...resolveEndpoint(record, []), apiVersion: headers[API_VERSION] ?? null };
        return reply
          .header('content-type', headers['content-type'] ?? 'application/json')
          .send(
            batchId === null
              ? buildBody(endpoint, sent, dependencies.publicUrl)
              : buildBatchBody(endpoint, events, batchId, dependencies.publicUrl),
          );
      },
    );
  };
}

/** The events that the request carried, in order. Null: one of them, or the composition of the batch, is not stored. */
async function loadSentEvents(
  pool: Pool,
  deliveryId: Uuid,
  batchId: string | null,
): Promise<EventContent[] | null> {
  const batch = batchId === null ? null : await findBatchMembers(pool, parsePublicId('bat', batchId)!);
  if (batchId !== null && batch === null) return null;
  const ids = (batch?.deliveryIds ?? [deliveryId]).map(eventIdOfDelivery);
  const stored = await loadEvents(pool, ids);
  const events = ids.flatMap((id) => stored.get(id) ?? []);
  return events.length === ids.length ? events : null;
}

/** The event with the payload that the attempt was sent with. Null: it is no longer stored. */
async function asSent(
  pool: Pool,
  deliveryId: Uuid,
  event: EventContent,
  note: ConversionNote | null,
): Promise<EventContent | null> {
  const key = conversionKeyOf(deliveryId, note);
  if (key === null) return event;
  const [stored] = await findConversions(pool, [key]);
  return stored === undefined ? null : { ...event, data: stored.data, schemaVersion: key.version };
}
