import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { parsePublicId } from '../../src/domain/ids.ts';
import { eventually } from '../support/eventually.ts';
import {
  attemptsOf,
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import type { RecordedRequest } from '../support/receiver.ts';

const posthorn = usePosthorn({
  env: {
    POSTHORN_STATS_FLUSH_MS: '100ms',
    POSTHORN_UPKEEP_MS: '150ms',
    POSTHORN_AUTO_DISABLE_MIN_DELIVERIES: '12',
    POSTHORN_AUTO_DISABLE_FAILING_MS: '1s',
    POSTHORN_IDEMPOTENCY_TTL_MS: '1s',
  },
});

const OK = { status: 200 };
const REJECT = { status: 400 };
const endpointNow = async (id: string) =>
  (await expectStatus(posthorn.api('GET', `/v1/endpoints/${id}`), 200)).body;

async function publishMany(tenant: string, count: number, data: unknown = 1): Promise<void> {
  const events = Array.from({ length: count }, () => ({ tenant, type: 'a.b', data }));
  await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }), 202);
}

describe('HLT-3: health figures', () => {
  test('OBS-4: during an outage the success rate counts the deliveries that are being retried', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const retry = { schedule: [0, 3600], jitter: 'none' };
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant, breaker: null, retry });
    await publishMany(tenant, 6);
    await receiver.waitFor(6);
    receiver.answer({ status: 503 });
    await publishMany(tenant, 4, 'outage');
    const stats = async (query = '') =>
      (await expectStatus(posthorn.api('GET', `/v1/stats?window=1h&tenant=${tenant}${query}`), 200)).body;
    await eventually('all are counted', async () => {
      const { attempts, now } = await stats();
      return attempts === 10 && now.retrying === 4;
    });
    expect(await stats()).toMatchObject({ success_rate: 0.6, final_success_rate: 1 });
    expect(await stats('&type=a.b')).toMatchObject({ success_rate: 0.6, types: [{ success_rate: 0.6 }] });
    const { body } = await posthorn.api('GET', `/v1/endpoints/${id}/stats?window=1h`);
    const inSeries = body.series.filter(({ attempts }: { attempts: number }) => attempts > 0);
    expect(Math.min(...inSeries.map((point: { success_rate: number }) => point.success_rate))).toBeLessThan(
      1,
    );
    const { health } = await endpointNow(id);
    expect(health).toMatchObject({ success_rate: 0.6, waiting: 4, dead: 0, count_limit: 10_000 });
    const { body: list } = await posthorn.api('GET', `/v1/endpoints?tenant=${tenant}&limit=100`);
    expect(list.data[0].health).toMatchObject({ waiting: 4, count_limit: expect.any(Number) });
  });

  test('include success rate, response times, retries, dead letters, depth and age', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const endpoint = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      breaker: null,
      retry: { schedule: [0, 0.01], jitter: 'none' },
    });
    expect(endpoint).toMatchObject({
      health: { success_rate: null, p50_ms: null, dead_letter_rate: null, retry_distribution: [] },
    });
    // Ten at the first try, after 50 ms; two at the second; one never.
    receiver.answer(({ json, headers }) => {
      if (json().data === 'never') return REJECT;
      if (json().data === 'later' && headers['posthorn-attempt'] === '1') return { status: 503, delayMs: 50 };
      return { ...OK, delayMs: 50 };
    });
    await publishMany(tenant, 10);
    await publishMany(tenant, 2, 'later');
    await publishMany(tenant, 1, 'never');
    const { health } = await eventually('the figures are in', async () => {
      const shown = await endpointNow(endpoint.id);
      return shown.health.success_rate === 0.8 && shown;
    });
    expect(health).toMatchObject({
      waiting: 0,
      dead: 1,
      oldest_waiting_at: null,
      success_rate: 0.8,
      retry_distribution: [10, 2],
      dead_letter_rate: Math.round((1 / 13) * 1e4) / 1e4,
    });
    // Four buckets to an octave: a percentile is within a fifth of the exact one.
    const [exact] = await posthorn.database.query<{ p50: number }>(
      'select percentile_cont(0.5) within group (order by duration_ms) as p50 from posthorn.attempts where url like $1',
      [`${receiver.url}%`],
    );
    expect(health.p50_ms / exact!.p50).toBeGreaterThan(0.75);
    expect(health.p50_ms / exact!.p50).toBeLessThan(1.3);
    expect(health.p99_ms).toBeGreaterThanOrEqual(health.p95_ms);
    expect(health.p95_ms).toBeGreaterThanOrEqual(health.p50_ms);

    for (const window of ['1h', '24h', '7d']) {
      const stats = await expectStatus(
        posthorn.api('GET', `/v1/endpoints/${endpoint.id}/stats?window=${window}`),
        200,
      );
      expect(stats.body).toMatchObject({
        window,
        attempts: 15,
        successes: 12,
        failures: 3,
        retried: 2,
        delivered: 12,
        dead: 1,
        success_rate: 0.8,
        hours: expect.any(Array),
      });
      const inHours = stats.body.hours.reduce(
        (sum: number, hour: { attempts: number }) => sum + hour.attempts,
        0,
      );
      expect(inHours).toBe(15);
    }
    await expectStatus(posthorn.api('GET', `/v1/endpoints/${endpoint.id}/stats?window=1y`), 422);
    const other = await posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant: newTenant() });
    await expectStatus(
      posthorn.api('GET', `/v1/endpoints/${endpoint.id}/stats`, undefined, { key: other.body.key }),
      404,
    );
    await posthorn.api('POST', `/v1/endpoints/${endpoint.id}/pause`);
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    expect((await endpointNow(endpoint.id)).health).toMatchObject({
      waiting: 1,
      oldest_waiting_at: event.created_at,
    });
  });
});

describe('HLT-2: auto-disable', () => {
  const untilDisabled = (id: string) =>
    eventually('it is disabled', async () => {
      const endpoint = await endpointNow(id);
      return !endpoint.enabled && endpoint;
    });

  test('happens if more than half of the deliveries of a day died over at least an hour, and counts anew after the endpoint is enabled again', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant });
    const lucky = await newReceiver();
    const fine = await createEndpoint(posthorn, { url: lucky.url, tenant });
    await publishMany(tenant, 6);
    await receiver.waitFor(6);
    receiver.answer(REJECT);
    await publishMany(tenant, 7);
    // Two rounds of upkeep later it is still on: the rejections do not span an hour.
    await receiver.waitFor(13);
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(await endpointNow(id)).toMatchObject({ enabled: true });
    await posthorn.database.query(
      "update posthorn.endpoint_stats set at = at - interval '75 minutes' where endpoint_id = $1 and seconds = 900",
      [parsePublicId('ep', id)],
    );
    await publishMany(tenant, 1);
    expect(await untilDisabled(id)).toMatchObject({ disabled_reason: 'dead_letters' });
    expect(posthorn.output()).toContain('endpoint was disabled');
    const audit = await posthorn.api('GET', `/v1/audit?object_id=${id}&action=endpoint.disable`);
    expect(audit.body.data).toEqual([
      expect.objectContaining({
        actor: { id: 'posthorn', prefix: null, scope: 'system' },
        tenant,
        changes: [
          { field: 'enabled', before: true, after: false },
          { field: 'disabled_reason', before: null, after: 'dead_letters' },
          {
            field: 'rule',
            after: 'More than 50 % of at least 12 deliveries within 24 h died, over at least 1 h.',
          },
        ],
      }),
    ]);
    expect(await endpointNow(fine.id)).toMatchObject({ enabled: true });
    await posthorn.api('PATCH', `/v1/endpoints/${id}`, { enabled: true });
    // Two rounds of upkeep later it is still on.
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(await endpointNow(id)).toMatchObject({ enabled: true, disabled_reason: null });
  });

  test('happens if an endpoint has failed for a long time without a success', async () => {
    const [failing, flapping] = [await newReceiver(), await newReceiver()];
    const tenant = newTenant();
    const settings = {
      tenant,
      breaker: null,
      retry: { base: 0.2, factor: 1, attempts: 50, jitter: 'none' },
    };
    const down = await createEndpoint(posthorn, { ...settings, url: failing.url });
    const shaky = await createEndpoint(posthorn, { ...settings, url: flapping.url, max_in_flight: 1 });
    failing.answer({ status: 503 });
    let good = 0;
    flapping.answer(({ index }) => {
      if (index % 3 !== 2) return { status: 503 };
      good += 1;
      return OK;
    });
    await publishMany(tenant, 4);
    expect(await untilDisabled(down.id)).toMatchObject({ disabled_reason: 'failing' });
    expect(failing.requests.length).toBeGreaterThanOrEqual(5);
    await flapping.waitFor(12);
    expect(good).toBeGreaterThan(0);
    expect(await endpointNow(shaky.id)).toMatchObject({ enabled: true });
  });
});

describe('upkeep', () => {
  test('ACC-4: deletes expired idempotency keys, which can then be reused', async () => {
    const tenant = newTenant();
    const event = { tenant, type: 'a.b', data: 1, idempotency_key: 'again' };
    const first = await publish(posthorn, event);
    expect(await publish(posthorn, event)).toMatchObject({ id: first.id, duplicate: true });
    await eventually('the key is gone', async () => {
      const rows = await posthorn.database.query('select from posthorn.idempotency_keys where tenant = $1', [
        tenant,
      ]);
      return rows.length === 0;
    });
    const second = await publish(posthorn, { ...event, data: 2 });
    expect(second).toMatchObject({ duplicate: false });
    expect(second.id).not.toBe(first.id);
  });

  test('deletes workers that never came back', async () => {
    await posthorn.database.query(
      `insert into posthorn.workers (id, name, lock_key, wire_version, renewed_at, stopping)
       values (gen_random_uuid(), 'long gone', 1, 1, now() - interval '2 days', true)`,
    );
    await eventually('the row is gone', async () => {
      const rows = await posthorn.database.query("select from posthorn.workers where name = 'long gone'");
      return rows.length === 0;
    });
  });
});

describe('SIG-4: rotation', () => {
  const verifies = (secret: string, { body, headers }: RecordedRequest): boolean => {
    try {
      new Webhook(secret).verify(body.toString(), headers as Record<string, string>);
      return true;
    } catch {
      return false;
    }
  };
  const signaturesOf = ({ headers }: RecordedRequest) => headers['webhook-signature']!.split(' ').length;

  async function rotating() {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const endpoint = await createEndpoint(posthorn, { url: receiver.url, tenant });
    const path = `/v1/endpoints/${endpoint.id}`;
    return {
      ...endpoint,
      path,
      rotate: async (body?: object) =>
        (await expectStatus(posthorn.api('POST', `${path}/rotate-secret`, body), 200)).body,
      async sent(): Promise<RecordedRequest> {
        const before = receiver.requests.length;
        await publish(posthorn, { tenant, type: 'a.b', data: 1 });
        return (await receiver.waitFor(before + 1))[before]!;
      },
    };
  }

  test('lets both secrets sign until the overlap ends or the old one is revoked', async () => {
    const { path, secret: old, rotate, sent } = await rotating();
    const { secret, previous_expires_at } = await rotate();
    expect(secret).toMatch(/^whsec_/);
    expect(Math.abs(Date.parse(previous_expires_at) - Date.now() - 86_400_000)).toBeLessThan(60_000);
    const both = await sent();
    expect([verifies(old, both), verifies(secret, both), signaturesOf(both)]).toEqual([true, true, 2]);
    await expectStatus(posthorn.api('DELETE', `${path}/secrets/previous`), 204);
    const one = await sent();
    expect([verifies(old, one), verifies(secret, one), signaturesOf(one)]).toEqual([false, true, 1]);

    const next = await rotate({ overlap_seconds: 0.3 });
    const during = await sent();
    expect([verifies(secret, during), verifies(next.secret, during)]).toEqual([true, true]);
    await new Promise((resolve) => setTimeout(resolve, 350));
    const after = await sent();
    expect([verifies(secret, after), verifies(next.secret, after)]).toEqual([false, true]);

    const given = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    expect(await rotate({ secret: given, overlap_seconds: 0 })).toMatchObject({ secret: given });
    const last = await sent();
    expect([verifies(given, last), signaturesOf(last)]).toEqual([true, 1]);
    await expectStatus(posthorn.api('POST', `${path}/rotate-secret`, { secret: 'short' }), 422);
  });

  test('a sixth secret is refused, and all five keep signing, unless the previous one ends at once', async () => {
    const { path, secret: first, rotate, sent } = await rotating();
    const secrets = [first];
    for (let n = 0; n < 4; n += 1) secrets.push((await rotate()).secret);
    const { body } = await expectStatus(posthorn.api('POST', `${path}/rotate-secret`, {}), 422);
    expect(body.errors).toMatchObject([{ path: 'overlap_seconds' }]);
    const request = await sent();
    expect(secrets.map((secret) => verifies(secret, request))).toEqual([true, true, true, true, true]);
    const leaked = secrets.pop()!;
    secrets.push((await rotate({ overlap_seconds: 0 })).secret);
    const next = await sent();
    expect(secrets.map((secret) => verifies(secret, next))).toEqual([true, true, true, true, true]);
    expect([verifies(leaked, next), signaturesOf(next)]).toEqual([false, 5]);
    await expectStatus(posthorn.api('DELETE', `${path}/secrets/previous`), 204);
    await rotate();
  });

  test('SIG-5: the secret is shown by an explicit call, to those who may change the endpoint', async () => {
    const { id, path, tenant, secret, rotate, sent } = await rotating();
    expect((await posthorn.api('GET', `${path}/secret`)).body).toMatchObject({ secret, previous: [] });
    const next = await rotate();
    expect((await posthorn.api('GET', `${path}/secret`)).body).toMatchObject({
      secret: next.secret,
      previous: [{ expires_at: next.previous_expires_at }],
    });
    const key = async (body: object) => ({ key: (await posthorn.api('POST', '/v1/keys', body)).body.key });
    const reader = await key({ scope: 'read', tenant });
    const stranger = await key({ scope: 'tenant', tenant: newTenant() });
    await expectStatus(posthorn.api('GET', `${path}/secret`, undefined, reader), 403);
    await expectStatus(posthorn.api('POST', `${path}/rotate-secret`, undefined, reader), 403);
    for (const [method, route] of [
      ['GET', 'secret'],
      ['POST', 'rotate-secret'],
      ['DELETE', 'secrets/previous'],
      ['POST', 'test'],
    ] as const) {
      await expectStatus(posthorn.api(method, `/v1/endpoints/${id}/${route}`, undefined, stranger), 404);
    }
    const asymmetric = await createEndpoint(posthorn, {
      url: 'https://example.com/hook',
      tenant,
      signature: 'standard-ed25519',
    });
    // Receivers need the public key only: every view has it, and the private key is shown to those who ask for it.
    const address = `/v1/endpoints/${asymmetric.id}`;
    const { body: shown } = await posthorn.api('GET', `${address}/secret`);
    expect(shown).toMatchObject({
      secret: expect.stringMatching(/^whsk_/),
      public_key: expect.stringMatching(/^whpk_/),
    });
    expect(asymmetric).toMatchObject({ secret: null, public_key: shown.public_key });
    const { body: read } = await posthorn.api('GET', address);
    const { body: list } = await posthorn.api('GET', `/v1/endpoints?tenant=${tenant}`);
    const { body: patched } = await posthorn.api('PATCH', address, read);
    const listed = list.data.find((each: { id: string }) => each.id === asymmetric.id);
    for (const view of [read, listed, patched]) expect(view.public_key).toBe(shown.public_key);
    const { body: rotated } = await posthorn.api('POST', `${address}/rotate-secret`, {});
    expect(rotated).toMatchObject({ secret: null, public_key: expect.stringMatching(/^whpk_/) });
    expect(rotated.public_key).not.toBe(shown.public_key);
    expect((await posthorn.api('GET', address)).body.public_key).toBe(rotated.public_key);
    expect((await posthorn.api('GET', path)).body.public_key).toBeNull();
    // Another kind of signature needs another kind of secret: Posthorn generates one, and the old ones keep signing.
    await expectStatus(posthorn.api('PATCH', path, { signature: 'standard-ed25519' }), 200);
    expect((await posthorn.api('GET', `${path}/secret`)).body).toMatchObject({
      secret: expect.stringMatching(/^whsk_/),
      previous: [{ header: 'webhook-signature' }, { header: 'webhook-signature' }],
    });
    expect((await sent()).headers['webhook-signature']).toMatch(/^v1a,[^ ]+ v1,[^ ]+ v1,[^ ]+$/);
  });
});

describe('CON-2: a test event', () => {
  test('is sent only to that endpoint, whatever it subscribes to', async () => {
    const [receiver, bystander] = [await newReceiver(), await newReceiver()];
    const tenant = newTenant();
    const endpoint = await createEndpoint(posthorn, { url: receiver.url, tenant, events: ['order.*'] });
    await createEndpoint(posthorn, { url: bystander.url, tenant });
    const path = `/v1/endpoints/${endpoint.id}/test`;
    const { body: delivery } = await expectStatus(posthorn.api('POST', path), 202);
    expect(delivery).toMatchObject({ endpoint_id: endpoint.id, event_type: 'posthorn.test', tenant });
    await untilDeliveries(posthorn, delivery.event_id, 'delivered');
    expect(await attemptsOf(posthorn, delivery.id)).toMatchObject([{ number: 1, trigger: 'test' }]);
    expect(receiver.requests[0]!.json()).toMatchObject({ id: delivery.event_id, type: 'posthorn.test' });
    const own = await expectStatus(
      posthorn.api('POST', path, { type: 'customer.created', data: { id: 7 } }),
      202,
    );
    await untilDeliveries(posthorn, own.body.event_id, 'delivered');
    expect(receiver.requests[1]!.json()).toMatchObject({ type: 'customer.created', data: { id: 7 } });
    // The caller's bytes, as they are: numbers that JavaScript would write differently.
    const data = '{"amount": 1.10, "id": 12345678901234567890}';
    const exact = await expectStatus(posthorn.api('POST', path, `{"data":${data}}`), 202);
    await untilDeliveries(posthorn, exact.body.event_id, 'delivered');
    expect(receiver.requests[2]!.body.toString()).toContain(`"data":${data}}`);
    expect(bystander.requests).toHaveLength(0);
    expect((await posthorn.api('GET', `/v1/events/${own.body.event_id}`)).body).toMatchObject({
      endpoint_ids: [endpoint.id],
    });
    await expectStatus(posthorn.api('POST', path, { type: 'no good' }), 422);
    await expectStatus(posthorn.api('POST', path, { type: 'posthorn.mine' }), 422);
    await posthorn.api('PATCH', `/v1/endpoints/${endpoint.id}`, { enabled: false });
    await expectStatus(posthorn.api('POST', path), 409);
  });
});
