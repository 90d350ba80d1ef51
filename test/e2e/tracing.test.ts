/** OBS-3: the producer's trace continues through publish, commit, lane and attempt to the receiver, with tracing on or off. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  startTestPosthorn,
  type TestPosthorn,
  untilDeliveries,
} from '../support/posthorn.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const PRODUCER = `00-${TRACE_ID}-b7ad6b7169203331-01`;
const OTHER = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const UNSAMPLED = '00-5bf92f3577b34da6a3ce929d0e0e4737-00f067aa0ba902b8-00';
const tracing = (traceparent: string) => ({ headers: { traceparent, tracestate: 'shop=1' } });

interface ShownSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status?: { readonly code?: number };
  readonly attributes: readonly { key: string; value: { stringValue?: string; intValue?: number } }[];
}
const attributesOf = (span: ShownSpan) =>
  Object.fromEntries(span.attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]));
const contextOf = ({ traceId, spanId }: ShownSpan) => `00-${traceId}-${spanId}-01`;
const [INTERNAL, SERVER, CLIENT] = [1, 2, 3];

describe('OBS-3: with tracing on', () => {
  let database: TestDatabase;
  let collector: Receiver;
  let posthorn: TestPosthorn;
  beforeAll(async () => {
    [database, collector] = await Promise.all([createTestDatabase(), startReceiver()]);
    const env = {
      POSTHORN_TRACING: 'on',
      POSTHORN_TRACING_FLUSH_MS: '30ms',
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_SERVICE_NAME: 'posthorn-test',
    };
    posthorn = await startTestPosthorn({ database, env, inProcess: true });
  });
  afterAll(async () => {
    await posthorn.stop();
    await collector.close();
    await database.drop();
  });

  const spansOf = (traceId: string): ShownSpan[] =>
    collector.requests
      .flatMap((request) => request.json().resourceSpans)
      .flatMap(({ scopeSpans }) => scopeSpans)
      .flatMap(({ spans }) => spans as ShownSpan[])
      .filter((span) => span.traceId === traceId);
  const untilSpans = (traceId: string, count: number) =>
    eventually(`${count} spans of ${traceId}`, () => spansOf(traceId).length >= count && spansOf(traceId), {
      saw: () => spansOf(traceId).map(({ name }) => name),
    });

  test('the trace is one tree from the producer to every attempt, also after the event was stored', async () => {
    const receiver = await newReceiver();
    receiver.answer(({ index }) => ({ status: index === 0 ? 503 : 200 }));
    const tenant = newTenant();
    const { id: endpointId } = await createEndpoint(posthorn, {
      url: `${receiver.url}/hook/token-in-path`,
      tenant,
      retry: { schedule: [0, 0.05], jitter: 'none' },
    });
    const event = await publish(
      posthorn,
      { type: 'order.created', tenant, data: { card: 'payload-nobody-may-see' } },
      tracing(PRODUCER),
    );
    const [delivery] = await untilDeliveries(posthorn, event.id, 'delivered');
    // For a replay, payload and context come from the database.
    await expectStatus(posthorn.api('POST', `/v1/deliveries/${delivery!.id}/replay`), 202);
    await receiver.waitFor(3);
    const spans = await untilSpans(TRACE_ID, 9);

    const named = (name: string) => spans.filter((span) => span.name === `posthorn ${name}`);
    const [published] = named('publish');
    expect(published).toMatchObject({ kind: SERVER, parentSpanId: PRODUCER.split('-')[2] });
    expect(attributesOf(published!)).toMatchObject({
      'posthorn.event_id': event.id,
      'posthorn.tenant': tenant,
      'posthorn.event_type': 'order.created',
      'posthorn.deliveries': 1,
    });
    for (const [name, kind, count] of [
      ['accept wait', INTERNAL, 1],
      ['accept commit', INTERNAL, 1],
      ['lane wait', INTERNAL, 3],
      ['attempt', CLIENT, 3],
    ] as const) {
      expect(named(name), name).toHaveLength(count);
      for (const span of named(name)) expect(span).toMatchObject({ kind, parentSpanId: published!.spanId });
    }
    // Each span begins when the one before it has ended.
    const [wait, commit, lane] = [
      named('accept wait')[0]!,
      named('accept commit')[0]!,
      named('lane wait')[0]!,
    ];
    expect(BigInt(commit.startTimeUnixNano)).toBe(BigInt(wait.endTimeUnixNano));
    expect(BigInt(lane.startTimeUnixNano)).toBe(BigInt(commit.endTimeUnixNano));

    const attempts = named('attempt').sort((a, b) =>
      Number(BigInt(a.startTimeUnixNano) - BigInt(b.startTimeUnixNano)),
    );
    expect(receiver.requests.map(({ headers }) => headers.traceparent)).toEqual(attempts.map(contextOf));
    expect(receiver.requests.map(({ headers }) => headers.tracestate)).toEqual(Array(3).fill('shop=1'));
    expect(attempts.map((span) => attributesOf(span)['posthorn.attempt'])).toEqual([1, 2, 3]);
    expect(attributesOf(attempts[0]!)).toMatchObject({
      'posthorn.delivery_id': delivery!.id,
      'posthorn.endpoint_id': endpointId,
      'http.response.status_code': 503,
      'error.type': 'http_5xx',
      'server.address': '127.0.0.1',
      'server.port': receiver.port,
    });
    expect(attempts[0]!.status?.code).toBe(2);
    const sent = collector.requests.map(({ body }) => body.toString()).join();
    for (const secret of ['payload-nobody-may-see', 'token-in-path', posthorn.key])
      expect(sent).not.toContain(secret);
    expect(sent).toContain('posthorn-test');
  });

  test('each event of a batch has its own trace, and an event from a transaction the trace of its headers', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    const events = [
      { type: 'a.b', tenant, data: 1, headers: { TraceParent: OTHER } },
      { type: 'a.b', tenant, data: 2 },
    ];
    await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }, tracing(PRODUCER)), 202);
    const inSql = OTHER.replace('4bf9', '6bf9');
    await database.query('select posthorn.publish(type => $1, data => $2, tenant => $3, headers => $4)', [
      'a.b',
      '3',
      tenant,
      JSON.stringify({ traceparent: inSql }),
    ]);
    const requests = await receiver.waitFor(3);
    const traceIds = new Map(
      requests.map(({ json, headers }) => [json().data, headers.traceparent!.split('-')[1]]),
    );
    expect(traceIds).toEqual(
      new Map([
        [1, OTHER.split('-')[1]],
        [2, TRACE_ID],
        [3, inSql.split('-')[1]],
      ]),
    );
    // There was no HTTP request, so its spans are children of the producer's span.
    const spans = await untilSpans(inSql.split('-')[1]!, 4);
    expect(new Set(spans.map(({ parentSpanId }) => parentSpanId))).toEqual(new Set([inSql.split('-')[2]]));
  });

  test('a trace begins if there is none, and an unsampled context is passed on unchanged', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    await publish(posthorn, { type: 'a.b', tenant, data: 1 });
    const [own] = await receiver.waitFor(1);
    const spans = await untilSpans(own!.headers.traceparent!.split('-')[1]!, 5);
    expect(spans.find(({ name }) => name === 'posthorn publish')!.parentSpanId ?? '').toBe('');

    await publish(posthorn, { type: 'a.b', tenant, data: 2 }, tracing(UNSAMPLED));
    const [, unsampled] = await receiver.waitFor(2);
    expect(unsampled!.headers).toMatchObject({ traceparent: UNSAMPLED, tracestate: 'shop=1' });
    await publish(posthorn, { type: 'a.b', tenant, data: 3 }, tracing(OTHER.replace('4bf9', '7bf9')));
    await untilSpans(OTHER.replace('4bf9', '7bf9').split('-')[1]!, 5);
    expect(spansOf(UNSAMPLED.split('-')[1]!)).toEqual([]);
  });
});

describe('OBS-3: with tracing off', () => {
  let database: TestDatabase;
  let posthorn: TestPosthorn;
  beforeAll(async () => {
    database = await createTestDatabase();
    posthorn = await startTestPosthorn({ database, inProcess: true });
  });
  afterAll(async () => {
    await posthorn.stop();
    await database.drop();
  });

  test('the receiver gets the unchanged context of the producer, and an invalid context is dropped', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    const send = async (data: unknown, part: Record<string, unknown>, headers: Record<string, string>) => {
      const event = await publish(posthorn, { type: 'a.b', tenant, data, ...part }, { headers });
      const [delivery] = await untilDeliveries(posthorn, event.id, 'delivered');
      return {
        traceparent: undefined,
        tracestate: undefined,
        ...receiver.requests.at(-1)!.headers,
        delivery,
        event,
      };
    };
    const given = { traceparent: PRODUCER, tracestate: 'shop=1,other=2' };
    const plain = await send(1, {}, given);
    expect(plain).toMatchObject(given);
    await expectStatus(posthorn.api('POST', `/v1/deliveries/${plain.delivery!.id}/replay`), 202);
    const replayed = (await receiver.waitFor(2)).at(-1)!;
    expect(replayed.headers).toMatchObject(given);
    expect((await posthorn.api('GET', `/v1/events/${plain.event.id}`)).body.headers).toEqual(given);

    // The headers of the event override those of the request, and the two are not mixed.
    const own = await send(2, { headers: { Traceparent: OTHER, 'x-shop': 'a' } }, given);
    expect(own).toMatchObject({ traceparent: OTHER, tracestate: undefined, 'x-shop': 'a' });
    const beside = await send(3, { headers: { 'x-shop': 'b' } }, given);
    expect(beside).toMatchObject({ ...given, 'x-shop': 'b' });

    const nonsense = await send(4, {}, { traceparent: 'nonsense', tracestate: 'shop=1' });
    expect(nonsense).toMatchObject({ traceparent: undefined, tracestate: undefined });
    const none = await send(5, {}, {});
    expect(none).toMatchObject({ traceparent: undefined, tracestate: undefined });
    expect((await posthorn.api('GET', `/v1/events/${none.event.id}`)).body.headers).toEqual({});
  });
});
