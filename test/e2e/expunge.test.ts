import { expect, test } from 'vitest';
import { parsePublicId } from '../../src/domain/ids.ts';
import {
  attemptsOf,
  createEndpoint,
  deliveriesOf,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';

const SECRET = 'very-private-thing';
const posthorn = usePosthorn({ env: { POSTHORN_INBOX: 'true' } });
const { api } = posthorn;

/** Every table and column of the database that contains this text, in any form. */
async function tablesWith(text: string): Promise<string[]> {
  const tables = await posthorn.database.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'posthorn'::regnamespace and relkind = 'r' order by 1`,
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const hex = Buffer.from(text).toString('hex');
    const rows = await posthorn.database.query(
      `select 1 from posthorn.${name} t where t::text like $1 or t::text like $2 limit 1`,
      [`%${text}%`, `%${hex}%`],
    );
    if (rows.length > 0) found.push(name);
  }
  return found;
}

test('LIF-3: the payload of an event is gone from every table, with what receivers echoed', async () => {
  const tenant = newTenant();
  const [failing, delivered, dying] = [await newReceiver(), await newReceiver(), await newReceiver()];
  failing.answer(({ body }) => ({ status: 500, body: `cannot take ${body}` }));
  delivered.answer(({ body }) => ({ status: 200, body: `took ${body}` }));
  dying.answer(({ body }) => ({ status: 400, body: `bad ${body}` }));
  const inbox = (await expectStatus(api('POST', '/v1/inboxes', { tenant }), 201)).body;
  for (const url of [failing.url, delivered.url, dying.url, inbox.url])
    await createEndpoint(posthorn, { tenant, url, retry: { schedule: [0, 3600] } });
  const event = await publish(posthorn, {
    tenant,
    type: 'user.created',
    data: { email: SECRET },
    headers: { 'x-user': SECRET },
    idempotency_key: 'user-1',
  });
  await untilEnded(event.id, ['dead', 'delivered', 'delivered', 'retrying']);
  expect(await tablesWith(SECRET)).not.toEqual([]);

  await expectStatus(api('DELETE', `/v1/events/${event.id}/payload`), 204);
  expect(await tablesWith(SECRET)).toEqual([]);
  const shown = (await expectStatus(api('GET', `/v1/events/${event.id}`), 200)).body;
  expect(shown).toMatchObject({ data: null, headers: {}, expunged_by: 'admin' });
  expect(Date.parse(shown.expunged_at)).toBeGreaterThan(Date.parse(event.created_at));
  const deliveries = await deliveriesOf(posthorn, event.id);
  expect(deliveries.map(({ status, reason }) => `${status} ${reason}`).sort()).toEqual([
    'delivered null',
    'delivered null',
    'discarded expunged',
    'skipped expunged',
  ]);
  for (const { id } of deliveries)
    expect(await attemptsOf(posthorn, id)).toMatchObject([{ number: 1, response_body: null }]);

  // Nothing can bring it back.
  await expectStatus(api('POST', `/v1/events/${event.id}/replay`, {}), 409);
  const discarded = deliveries.find(({ status }) => status === 'discarded')!;
  await expectStatus(api('POST', `/v1/deliveries/${discarded.id}/replay`), 409);
  await expectStatus(api('POST', `/v1/deliveries/${discarded.id}/restore`), 409);
  const repeated = { tenant, type: 'user.created', data: { email: SECRET }, idempotency_key: 'user-1' };
  await expectStatus(api('POST', '/v1/events', repeated), 409);
  await expectStatus(api('DELETE', `/v1/events/${event.id}/payload`), 204);
  const entries = await expectStatus(api('GET', `/v1/audit?action=event.expunge&object_id=${event.id}`), 200);
  expect(entries.body.data).toHaveLength(1);
});

test('LIF-3: a delivery that waits in memory is not sent after its payload was expunged', async () => {
  const tenant = newTenant();
  const receiver = await newReceiver();
  const endpoint = await createEndpoint(posthorn, { tenant, url: receiver.url });
  await expectStatus(api('POST', `/v1/endpoints/${endpoint.id}/pause`), 200);
  const secret = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
  const other = await publish(posthorn, { tenant, type: 'a.b', data: 2 });
  await expectStatus(api('DELETE', `/v1/events/${secret.id}/payload`), 204);
  await expectStatus(api('POST', `/v1/endpoints/${endpoint.id}/resume`), 200);
  await untilDeliveries(posthorn, other.id, 'delivered');
  expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual([other.id]);
  expect(await deliveriesOf(posthorn, secret.id)).toMatchObject([{ status: 'skipped', reason: 'expunged' }]);
  expect(
    await posthorn.database.query(
      'select kind, applied_at is not null as done from posthorn.expunged where id = $1',
      [parsePublicId('evt', secret.id)],
    ),
  ).toEqual([{ kind: 'event', done: true }]);
});

test("LIF-3: nobody can expunge another tenant's payload", async () => {
  const event = await publish(posthorn, { tenant: newTenant(), type: 'a.b', data: 1 });
  const key = (await expectStatus(api('POST', '/v1/keys', { scope: 'tenant', tenant: newTenant() }), 201))
    .body;
  await expectStatus(api('DELETE', `/v1/events/${event.id}/payload`, undefined, { key: key.key }), 404);
});

async function untilEnded(eventId: string, statuses: readonly string[]): Promise<void> {
  await expect
    .poll(async () => (await deliveriesOf(posthorn, eventId)).map(({ status }) => status).sort(), {
      timeout: 10_000,
    })
    .toEqual(statuses);
}
