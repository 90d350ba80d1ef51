/** `POST /v1/endpoints/{id}/probe`: one request at once, also while the circuit is open. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  startTestPosthorn,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';

const posthorn = usePosthorn({ inProcess: true });

const BREAKER = { consecutive: 1, cooldown_seconds: 300 };
const endpointNow = async (id: string) =>
  (await expectStatus(posthorn.api('GET', `/v1/endpoints/${id}`), 200)).body;
const probe = (id: string, by = posthorn) => by.api('POST', `/v1/endpoints/${id}/probe`);
const afterAttempts = (deliveryId: string, attempts: number) =>
  eventually(`${attempts} attempts are recorded`, async () => {
    const { body } = await posthorn.api('GET', `/v1/deliveries/${deliveryId}`);
    return body.attempts === attempts && body;
  });

/** An endpoint whose first delivery failed, so that its circuit is open, and `waiting` more deliveries. */
async function openCircuit(settings: object = {}, waiting = 2) {
  const receiver = await newReceiver();
  receiver.answer({ status: 503 });
  const tenant = newTenant();
  const { id } = await createEndpoint(posthorn, {
    url: receiver.url,
    tenant,
    breaker: BREAKER,
    retry: { schedule: [0, 600, 600, 600], jitter: 'none' },
    ...settings,
  });
  const first = await publish(posthorn, { tenant, type: 'a.b', data: 0 });
  const endpoint = await eventually('the circuit is open', async () => {
    const shown = await endpointNow(id);
    return shown.health.circuit === 'open' && shown;
  });
  for (let n = 1; n <= waiting; n += 1) await publish(posthorn, { tenant, type: 'a.b', data: n });
  const [delivery] = (await posthorn.api('GET', `/v1/events/${first.id}/deliveries`)).body.data;
  return { receiver, tenant, id, endpoint, delivery };
}

describe('POST /v1/endpoints/{id}/probe', () => {
  test.each(['none', 'fifo'])(
    'sends the oldest delivery once; a failure changes nothing, a success closes the circuit (ordering %s)',
    async (ordering) => {
      const { receiver, tenant, id, endpoint, delivery } = await openCircuit({ ordering });
      expect((await expectStatus(probe(id), 202)).body).toMatchObject({ id: delivery.id });
      await afterAttempts(delivery.id, 2);
      expect(receiver.requests.map(({ json }) => json().data)).toEqual([0, 0]);
      expect((await endpointNow(id)).health).toMatchObject({
        circuit: 'open',
        next_probe_at: endpoint.health.next_probe_at,
        waiting: 3,
      });

      receiver.answer({ status: 200 });
      await expectStatus(probe(id), 202);
      await eventually('all are delivered', async () => (await endpointNow(id)).health.waiting === 0);
      expect((await endpointNow(id)).health.circuit).toBe('closed');
      expect(receiver.requests.map(({ json }) => json().data).toSorted()).toEqual([0, 0, 0, 1, 2]);
      const audit = await posthorn.api('GET', `/v1/audit?tenant=${tenant}&action=endpoint.probe`);
      expect(audit.body.data).toHaveLength(2);
      expect(audit.body.data[0].changes).toEqual([{ field: 'delivery', after: delivery.id }]);
    },
  );

  test('sends a test event if nothing waits', async () => {
    const receiver = await newReceiver();
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant: newTenant() });
    const { body } = await expectStatus(probe(id), 202);
    const [request] = await receiver.waitFor(1);
    expect(request!.json()).toMatchObject({ type: 'posthorn.test' });
    await untilDeliveries(posthorn, body.event_id, 'delivered');
  });

  test('is 409 while a probe is on the wire, and if the endpoint is paused, disabled or deleted', async () => {
    const { receiver, id, delivery } = await openCircuit();
    receiver.hang();
    await expectStatus(probe(id), 202);
    await receiver.waitFor(2);
    expect((await expectStatus(probe(id), 409)).body.detail).toContain('on its way');
    receiver.release();
    await afterAttempts(delivery.id, 2);
    await posthorn.api('POST', `/v1/endpoints/${id}/pause`);
    expect((await expectStatus(probe(id), 409)).body.detail).toContain('paused');
    await posthorn.api('POST', `/v1/endpoints/${id}/resume`);
    await posthorn.api('PATCH', `/v1/endpoints/${id}`, { enabled: false });
    expect((await expectStatus(probe(id), 409)).body.detail).toContain('disabled');
    await posthorn.api('DELETE', `/v1/endpoints/${id}`);
    expect((await expectStatus(probe(id), 409)).body.detail).toContain('deleted');
    expect(receiver.requests).toHaveLength(2);
  });

  test('sends exactly one request if many ask at once, through any process', async () => {
    const { receiver, id, delivery } = await openCircuit();
    const other = await startTestPosthorn({
      database: posthorn.database,
      inProcess: true,
      env: { POSTHORN_ROLE: 'api' },
    });
    onTestFinished(() => other.stop());
    receiver.hang();
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) => probe(id, n % 2 === 0 ? { ...posthorn, ...other } : posthorn)),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([202, ...Array(9).fill(409)]);
    receiver.release();
    await afterAttempts(delivery.id, 2);
    await expectStatus(probe(id, { ...posthorn, ...other }), 202);
    await afterAttempts(delivery.id, 3);
    expect(receiver.requests).toHaveLength(3);
  });

  test('a test event goes through an open circuit', async () => {
    const { receiver, id } = await openCircuit();
    receiver.answer({ status: 200 });
    const { body } = await expectStatus(posthorn.api('POST', `/v1/endpoints/${id}/test`, {}), 202);
    await untilDeliveries(posthorn, body.event_id, 'delivered');
    expect((await endpointNow(id)).health.circuit).toBe('closed');
  });
});
