/** What the console says about consequences: warnings, what a replay leaves out, which secret signs, why nothing was sent. */
import { describe, expect, test } from 'vitest';
import { findViolations, goTo, needsBrowser, useBrowser } from '../../console/support/browser.ts';
import { createManyEndpoints } from '../../support/many-endpoints.ts';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../../support/posthorn.ts';

const posthorn = usePosthorn({ env: { POSTHORN_STATS_CACHE_MS: '0', POSTHORN_INBOX: 'true' } });
const browser = useBrowser(() => posthorn.url);

describe('the console says what follows', needsBrowser(), () => {
  test('CON-2: warnings about an endpoint appear with the labels of the form, also after a change', async () => {
    const tenant = newTenant();
    const { url } = await newReceiver();
    const suspect = { 'data.amount': { gte: 100 } };
    const { id } = await createEndpoint(posthorn, { url, tenant, description: 'Orders', filter: suspect });
    const page = await browser.open(posthorn.key, `/endpoints/${id}?tab=configuration`);
    await page.getByLabel('Description').fill('All orders');
    await page.getByRole('button', { name: 'Save changes' }).click();
    const warning = page.locator('.notice.warn').filter({ hasText: 'the operator is "$gte"' });
    await warning.getByText('Filter (JSON)').waitFor();
    expect(await findViolations(page)).toEqual([]);

    await page.goto(`${posthorn.url}/console/endpoints/${id}?tab=filter`);
    await page.getByLabel('Filter (JSON)').fill(JSON.stringify(suspect));
    await page.getByRole('button', { name: 'Save filter' }).click();
    await warning.waitFor();
    await page.getByLabel('Filter (JSON)').fill('{ "data.amount": { "$gte": 100 } }');
    await page.getByRole('button', { name: 'Save filter' }).click();
    await warning.waitFor({ state: 'detached' });

    await page.goto(`${posthorn.url}/console/endpoints/new`);
    await page.getByLabel('URL').fill(url);
    await page.getByLabel('Tenant', { exact: true }).last().fill(tenant);
    await page.getByRole('button', { name: 'Add endpoint' }).click();
    const dialog = page.getByRole('dialog');
    const duplicate = dialog.locator('.notice.warn').filter({ hasText: `is also the URL of ${id}` });
    await duplicate.getByText('URL', { exact: true }).waitFor();
  });

  test('CON-4: a replay of an event counts all deliveries and says which it leaves out, before it sends', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    receiver.answer({ status: 400 });
    const ids: string[] = [];
    // More than one page of deliveries.
    for (let count = 0; count < 52; count += 1)
      ids.push((await createEndpoint(posthorn, { url: `${receiver.url}/${count}`, tenant })).id);
    const event = await publish(posthorn, { type: 'order.created', tenant, data: 1 });
    await untilDeliveries(posthorn, event.id, 'dead', { count: 52 });
    const page = await browser.open(posthorn.key, `/events/${event.id}`);
    await page.getByRole('button', { name: 'Replay 52 failed' }).waitFor();
    for (const id of ids.slice(0, 2))
      await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { enabled: false }), 200);
    await page.getByRole('button', { name: 'Replay 52 failed' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('2 deliveries belong to an endpoint that is disabled or deleted').waitFor();
    await dialog.getByRole('button', { name: 'Replay 50 deliveries' }).waitFor();
    expect(await findViolations(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    expect(receiver.requests).toHaveLength(52);
    await page.getByRole('button', { name: 'Replay all…' }).click();
    await dialog.getByText('sends the event to 50 endpoints again').waitFor();
    await dialog.getByRole('button', { name: 'Replay 50 deliveries' }).click();
    await page.getByText('Skipped 2 deliveries to disabled or deleted endpoints').waitFor();
    await receiver.waitFor(102);
  });

  test('CON-2: the secret of a github endpoint is rotated with a time at which the new one takes over', async () => {
    const tenant = newTenant();
    const { url } = await newReceiver();
    const { id } = await createEndpoint(posthorn, { url, tenant, signature: 'github' });
    const page = await browser.open(posthorn.key, `/endpoints/${id}?tab=configuration`);
    await page.getByRole('button', { name: 'Rotate…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('The old secret keeps signing the main header until the overlap ends').waitFor();
    const takesOver = dialog.getByLabel('The new secret takes over at');
    await takesOver.fill('2020-01-01T00:00');
    await dialog.getByRole('button', { name: 'Rotate secret' }).click();
    await dialog.getByText('must be in the future').first().waitFor();
    await takesOver.fill(localTime(Date.now() + 3_600_000));
    await dialog.getByText('until the new secret takes over. Meanwhile').waitFor();
    expect(await findViolations(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Rotate secret' }).click();
    await page.getByText('2 secrets sign each request').waitFor();
    await page.getByText('x-hub-signature-256-next').waitFor();
    const { body } = await posthorn.api('GET', `/v1/endpoints/${id}`);
    expect(body.signing_secrets[0].switch_at).toMatch(/:00\.000Z$/);

    await page.getByRole('button', { name: 'Rotate…' }).click();
    await dialog.getByLabel('Main signature header').selectOption('new');
    await dialog.getByText('The new secret signs from now on.').waitFor();
    await takesOver.waitFor({ state: 'detached' });
    await dialog.getByLabel('Overlap').selectOption('0');
    await dialog.getByText('and the old one stops').waitFor();
  });

  test('CON-2: an Ed25519 endpoint shows its public key, and the private key is not fetched', async () => {
    const tenant = newTenant();
    const { url } = await newReceiver();
    const { id } = await createEndpoint(posthorn, { url, tenant, signature: 'standard-ed25519' });
    const keyOf = async (): Promise<string> =>
      (await posthorn.api('GET', `/v1/endpoints/${id}`)).body.public_key;
    const before = await keyOf();
    const page = await browser.open(posthorn.key, `/endpoints/${id}?tab=configuration`);
    await page.getByRole('button', { name: `Copy the public key ${before}` }).waitFor();
    expect(await page.getByRole('button', { name: 'Reveal' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Rotate…' }).click();
    await page.getByRole('button', { name: 'Rotate key' }).click();
    await page.getByText('The new public key is shown').waitFor();
    const after = await keyOf();
    expect(after).not.toBe(before);
    await page.getByRole('button', { name: `Copy the public key ${after}` }).waitFor();
    const { body } = await posthorn.api('GET', `/v1/audit?object_id=${id}&action=endpoint.show_secret`);
    expect(body.data).toEqual([]);
  });

  test('CON-3: deliveries to a notifier and to a deleted endpoint are named, without a link to nowhere', async () => {
    const chat = await newReceiver();
    const tenant = newTenant();
    const notifier = await expectStatus(
      posthorn.api('POST', '/v1/notifiers', { kind: 'slack', tenant, url: chat.url }),
      201,
    );
    const test = await expectStatus(posthorn.api('POST', `/v1/notifiers/${notifier.body.id}/test`), 202);
    const page = await browser.open(posthorn.key, `/deliveries/${test.body.id}`);
    await page.getByRole('heading', { name: 'Notifier' }).waitFor();
    expect(await page.locator('.delivery-head').getByRole('link').count()).toBe(0);

    const { id } = await createEndpoint(posthorn, { url: chat.url, tenant });
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    await untilDeliveries(posthorn, event.id, 'delivered');
    await expectStatus(posthorn.api('DELETE', `/v1/endpoints/${id}`), 204);
    await page.goto(`${posthorn.url}/console/events/${event.id}`);
    await page.getByRole('heading', { name: 'Deleted endpoint' }).waitFor();
    expect(await page.locator('.delivery-head').getByRole('link').count()).toBe(0);
  });

  test('CON-3: an event says why nobody got it, what is wrong with its payload, and that its payload was deleted', async () => {
    const tenant = newTenant();
    const { url } = await newReceiver();
    const type = `${tenant.replace('tenant', 'thing')}.created`;
    const schema = { type: 'object', required: ['id'] };
    await expectStatus(posthorn.api('PUT', `/v1/event-types/${type}`, { schema, validation: 'warn' }), 201);
    const alone = await publish(posthorn, { tenant, type, data: {} });
    await createEndpoint(posthorn, { url, tenant, filter: { 'data.id': 1 } });
    const filtered = await publish(posthorn, { tenant, type, data: { id: 2 } });
    await expectStatus(posthorn.api('DELETE', `/v1/events/${filtered.id}/payload`), 204);

    const page = await browser.open(posthorn.key, `/events/${alone.id}`);
    await page.getByText('No endpoint subscribed to its type').waitFor();
    await page.getByText('Schema errors').waitFor();
    expect(await findViolations(page)).toEqual([]);
    await page.goto(`${posthorn.url}/console/events/${filtered.id}`);
    await page.getByText('their channels or filters left it out').waitFor();
    await page.getByText('Payload deleted').waitFor();
    await page.getByText('by admin').waitFor();
  });

  test('CON-1: the overview counts what waits for an open circuit, and "Try now" sends one request', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    receiver.answer({ status: 503 });
    const { id } = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      description: 'Warehouse of the north',
      breaker: { consecutive: 1, cooldown_seconds: 3600 },
    });
    const first = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    await receiver.waitFor(1);
    await untilDeliveries(posthorn, first.id, 'retrying');
    for (let count = 0; count < 3; count += 1) await publish(posthorn, { tenant, type: 'a.b', data: count });
    const { body } = await posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant });
    const page = await browser.open(body.key);
    await page.getByText('4 wait for an open circuit').waitFor();

    // The palette finds the endpoint by its description, and a delivery by its id.
    await page.keyboard.press('Control+k');
    await page.keyboard.insertText('of the north');
    await page.getByRole('option', { name: /Warehouse of the north/ }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Warehouse of the north' }).waitFor();
    expect(receiver.requests).toHaveLength(1);
    receiver.answer({ status: 200 });
    await page.getByRole('button', { name: 'Try now' }).click();
    await receiver.waitFor(2);
    await page.getByRole('button', { name: 'Try now' }).waitFor({ state: 'detached' });
    const [delivery] = await untilDeliveries(posthorn, first.id, 'delivered');
    await page.keyboard.press('Control+k');
    await page.keyboard.insertText(delivery!.id);
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/events/${first.id}?delivery=${delivery!.id}`);
    expect((await posthorn.api('GET', `/v1/endpoints/${id}`)).body.health.circuit).toBe('closed');
  });
});

describe('lists of the console', needsBrowser(), () => {
  test('CON-4: dead letters of an endpoint that is not among the newest 250 have its description', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    receiver.answer({ status: 400 });
    const { id } = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      description: 'The oldest endpoint',
      events: ['old.event'],
    });
    const event = await publish(posthorn, { tenant, type: 'old.event', data: 1 });
    await untilDeliveries(posthorn, event.id, 'dead');
    // Their ids are random and may sort before the first one, so there are enough of them.
    await createManyEndpoints(posthorn.database, {
      tenant,
      url: 'https://example.com',
      count: 600,
      paused: true,
    });
    const { body } = await posthorn.api('GET', `/v1/endpoints?tenant=${tenant}&limit=250`);
    expect(body.data.map((endpoint: { id: string }) => endpoint.id)).not.toContain(id);

    const key = await posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant });
    const page = await browser.open(key.body.key, '/dead-letters');
    await page.getByText('The oldest endpoint').waitFor();
    await page.goto(`${posthorn.url}/console/dead-letters?view=list`);
    await page.getByRole('row', { name: /old\.event The oldest endpoint/ }).waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.insertText('oldest endp');
    await page.getByRole('option', { name: /The oldest endpoint/ }).waitFor();
  });

  test('CON-5: every list can be exported', async () => {
    const { body: inbox } = await expectStatus(posthorn.api('POST', '/v1/inboxes', {}), 201);
    await fetch(inbox.url, { method: 'POST', body: 'x' });
    await posthorn.api('PUT', '/v1/event-types/list.exported', {});
    const page = await browser.open(posthorn.key);
    const lists = [
      ['/event-types', 'event-types'],
      ['/keys', 'keys'],
      ['/notices', 'notifiers'],
      ['/inbox', 'inboxes'],
      [`/inbox/${inbox.token}`, 'inbox-requests'],
      ['/dead-letters', 'dead-letter-groups'],
      ['/event-types/list.exported', 'failures'],
    ] as const;
    for (const [address, name] of lists) {
      await goTo(page, address);
      const download = page.waitForEvent('download');
      await page.getByRole('combobox', { name: 'Export this list' }).selectOption('ndjson');
      expect((await download).suggestedFilename()).toBe(`posthorn-${name}.ndjson`);
    }
  });
});

/** A time as a `datetime-local` field takes it. The browser has the time zone of this process. */
function localTime(ms: number): string {
  const date = new Date(ms);
  return new Date(ms - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
