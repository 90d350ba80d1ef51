/** Finding out what happened to an event, and acting on it. */
import { describe, expect, test } from 'vitest';
import {
  createEndpoint,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import { needsBrowser, UserActions, useBrowser } from './support/browser.ts';

const posthorn = usePosthorn({ env: { POSTHORN_STATS_FLUSH_MS: '100' } });
const browser = useBrowser(() => posthorn.url);

/** Two attempts, so that a delivery dies soon. */
const TWO_ATTEMPTS = { schedule: [0, 0.2], jitter: 'none' };

describe('deliveries in the console', needsBrowser(), () => {
  test('CON-3: with an event id, three interactions show its status and a hint, and two more replay it', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    receiver.answer({ status: 503, body: 'out of order' });
    await createEndpoint(posthorn, { url: receiver.url, tenant, retry: TWO_ATTEMPTS });
    const event = await publish(posthorn, { type: 'order.created', tenant, data: { order: 42 } });
    await untilDeliveries(posthorn, event.id, 'dead');

    const page = await browser.open(posthorn.key);
    const search = new UserActions(page);
    await search.press('Control+k');
    await search.paste(event.id);
    await search.press('Enter');
    await page.getByText('The receiver failed · every attempt failed').waitFor();
    await page.getByText('Look into its logs at the time of the attempt.').first().waitFor();
    await page.getByText('Dead', { exact: true }).first().waitFor();
    expect(search.count).toBeLessThanOrEqual(3);

    receiver.answer({ status: 200 });
    const replay = new UserActions(page);
    await replay.click('button', 'Replay');
    await page.getByText('Delivered', { exact: true }).first().waitFor();
    expect(replay.count).toBeLessThanOrEqual(2);
    await untilDeliveries(posthorn, event.id, 'delivered');
    expect(receiver.requests).toHaveLength(3);
  });

  test('CON-3: an event is found by a value in its payload, by its outcome and by its idempotency key', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    receiver.answer(({ headers }) => ({
      status: headers['posthorn-event-type'] === 'order.paid' ? 400 : 200,
    }));
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    const key = `${tenant}-key`;
    const paid = await publish(posthorn, {
      type: 'order.paid',
      tenant,
      idempotency_key: key,
      data: { order_id: 'ord-00123' },
    });
    await publish(posthorn, { type: 'order.created', tenant, data: { order_id: 'ord-00124' } });
    await untilDeliveries(posthorn, paid.id, 'dead');

    const page = await browser.open(posthorn.key, '/events');
    await page.getByRole('combobox', { name: 'Tenant' }).selectOption(tenant);
    const rows = page.getByRole('table', { name: 'Events' }).locator('tr.linked');
    await rows.nth(1).waitFor();
    await page
      .getByRole('searchbox', { name: 'Find by a value in the payload' })
      .fill('order_id = ord-00123');
    await page.keyboard.press('Enter');
    await page.getByText('Searched for').waitFor();
    expect(await rows.allTextContents()).toEqual([expect.stringMatching(/order\.paid.*1 dead/)]);
    await page.getByRole('button', { name: 'Clear' }).click();
    await rows.nth(1).waitFor();
    await page.getByRole('combobox', { name: 'Outcome' }).selectOption('delivered');
    await expect.poll(() => rows.allTextContents()).toEqual([expect.stringMatching(/1 delivered/)]);
    await page.getByRole('combobox', { name: 'Time' }).selectOption('custom');
    await page.getByLabel('To', { exact: true }).fill('2020-01-01T00:00');
    await page.getByText('No event matches').waitFor();

    await page.keyboard.press('Control+k');
    await page.keyboard.insertText(key);
    await page.getByRole('option', { name: /^Event order.paid/ }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'order.paid' }).waitFor();
  });

  test('CON-3: an attempt shows its request and response, and large numbers keep all their digits', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    receiver.answer({ status: 200, body: '{"thanks":true}', headers: { 'x-answered-by': 'test' } });
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    const event = await publish(
      posthorn,
      `{"type":"order.paid","tenant":"${tenant}","data":{"total":12345678901234567890.10}}`,
    );
    await untilDeliveries(posthorn, event.id, 'delivered');

    const page = await browser.open(posthorn.key, `/events/${event.id}`);
    await page.getByRole('region', { name: 'payload' }).getByText('12345678901234567890.10').waitFor();
    await page.getByRole('button', { name: /#1 200/ }).click();
    await page.getByText('webhook-signature').waitFor();
    await page.getByText('x-answered-by').waitFor();
    await page.getByRole('region', { name: 'response body' }).getByText('"thanks"').waitFor();
    await page.getByRole('region', { name: 'request body' }).getByText(`"${event.id}"`).waitFor();
    await page.getByText(/Waiting for the response/).waitFor();
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'Copy as curl' }).click();
    const command = String(await page.evaluate('navigator.clipboard.readText()'));
    expect(command).toContain(`curl -X POST '${receiver.url}`);
    expect(command).toContain(`-H 'webhook-id: ${event.id}'`);
    expect(command).toContain('12345678901234567890.10');
  });

  test('CON-2: the endpoint form shows API errors at their fields, creates an endpoint, and sends it a test event', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    await posthorn.api('PUT', `/v1/event-types/${tenant}.created`, { description: 'An order was placed.' });
    for (const amount of [50, 500])
      await publish(posthorn, { type: `${tenant}.created`, tenant, data: { amount } });
    const page = await browser.open(posthorn.key, '/endpoints/new');
    await page.getByLabel('URL').fill('http://169.254.169.254/');
    await page.getByLabel('Tenant', { exact: true }).last().fill(tenant);
    await page.getByRole('button', { name: 'Add endpoint' }).click();
    await expectFieldError(page.getByLabel('URL'), page, /reserved address/);
    await page.getByLabel('URL').fill(receiver.url);

    // The errors of all fields are shown at once, by their labels, also those of closed sections.
    await page.getByText('timeout 15 s · 10 concurrent requests').waitFor();
    await page.locator('summary').filter({ hasText: 'Delivery' }).click();
    await page.getByLabel('Timeout (ms)').fill('5');
    await page.getByLabel('Concurrent requests').fill('none');
    await page.locator('summary').filter({ hasText: 'Delivery' }).click();
    await page.getByRole('button', { name: 'Add endpoint' }).click();
    await page.getByText('2 fields are invalid: Timeout (ms), Concurrent requests').waitFor();
    await expectFieldError(page.getByLabel('Timeout (ms)'), page, /1000/);
    await page.getByLabel('Timeout (ms)').fill('');
    await page.getByLabel('Concurrent requests').fill('');

    await page.getByRole('button', { name: `${tenant}.created` }).click();
    expect(await page.getByLabel('Event types').inputValue()).toBe(`${tenant}.created`);
    await page.getByLabel('Filter (JSON)').fill('{"data.amount": {"$gte": 100}}');
    await page.getByText('Selects 1 of the last 2 events.').waitFor();
    await page.getByRole('button', { name: 'Add endpoint' }).click();
    const dialog = page.getByRole('dialog');
    const secret = await dialog.getByRole('button', { name: 'Copy the secret' }).textContent();
    expect(secret).toMatch(/^whsec_/);
    await dialog.getByText('verifyWebhook').first().waitFor();
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('heading', { name: receiver.url.replace(/^http:\/\/|\/$/g, '') }).waitFor();

    await page.getByRole('button', { name: 'Send test event' }).click();
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await page.getByText('The endpoint answered 200').waitFor();
    await receiver.waitFor(1);
    await page.getByRole('link', { name: 'Show request and response' }).click();
    await page.getByRole('heading', { name: 'posthorn.test' }).waitFor();
    await page.goBack();

    await page.getByRole('link', { name: 'Configuration' }).click();
    await page.locator('summary').filter({ hasText: 'Delivery' }).click();
    await page.getByLabel('Timeout (ms)').fill('5');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await expectFieldError(page.getByLabel('Timeout (ms)'), page, /1000/);
    await page.getByLabel('Timeout (ms)').fill('2000');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Saved', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('nothing is sent until you resume it').waitFor();
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByText('Healthy').waitFor();
    const id = page.url().match(/ep_\w+/)![0];
    const { body } = await posthorn.api('GET', `/v1/endpoints/${id}`);
    expect(body).toMatchObject({ tenant, timeout_ms: 2000, paused: false });
  });

  test('CON-2: a secret is revealed and rotated, and during the overlap both secrets sign', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    const endpoint = await createEndpoint(posthorn, { url: receiver.url, tenant });
    const page = await browser.open(posthorn.key, `/endpoints/${endpoint.id}?tab=configuration`);
    expect(await page.content()).not.toContain(endpoint.secret);
    await page.getByRole('button', { name: 'Reveal' }).click();
    await page.getByText(endpoint.secret).waitFor();
    await page.getByRole('button', { name: 'Rotate…' }).click();
    await page.getByRole('button', { name: 'Rotate secret' }).click();
    await page.getByText('2 secrets sign each request').waitFor();
    const shown = await page.getByRole('button', { name: 'Copy the secret' }).textContent();
    expect(shown).toMatch(/^whsec_/);
    expect(shown).not.toBe(endpoint.secret);
    const { body } = await posthorn.api('GET', `/v1/endpoints/${endpoint.id}/secret`);
    expect(body.secret).toBe(shown);
    await publish(posthorn, { type: 'a', tenant, data: 1 });
    const [request] = await receiver.waitFor(1);
    expect(request!.headers['webhook-signature']!.split(' ')).toHaveLength(2);
    await page.getByRole('button', { name: 'Revoke the old secret' }).click();
    await page.getByText('2 secrets sign each request').waitFor({ state: 'detached' });
  });

  test('CON-4: dead letters are grouped, a discard can be undone, and the progress of a bulk replay survives a reload', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    receiver.answer({ status: 400 });
    const endpoint = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      max_in_flight: 50,
      breaker: null,
    });
    const events = Array.from({ length: 40 }, (_, n) => ({ type: 'order.created', tenant, data: { n } }));
    await posthorn.api('POST', '/v1/events/batch', { events });
    await receiver.waitFor(40);

    const page = await browser.open(posthorn.key);
    await page.getByRole('combobox', { name: 'Tenant' }).selectOption(tenant);
    await page
      .getByRole('navigation', { name: 'Pages' })
      .getByRole('link', { name: /^Dead letters/ })
      .click();
    await page
      .getByRole('row', { name: /the receiver rejected the request/ })
      .getByText('40', { exact: true })
      .waitFor();
    await page
      .getByRole('row', { name: /the receiver rejected the request/ })
      .getByRole('link')
      .click();

    await page.getByRole('button', { name: 'Discard all matching' }).click();
    await page.getByRole('button', { name: 'Discard 40 dead letters' }).click();
    await page.getByText('Discarding 40 dead letters in 10 seconds').waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Nothing was discarded').waitFor();

    await page.getByRole('table', { name: 'Dead letters' }).getByRole('link').first().click();
    await page.getByRole('button', { name: 'Discard' }).click();
    await page.getByText('Discarded', { exact: true }).first().waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Restored as a dead letter').waitFor();
    await page.goBack();

    receiver.answer({ status: 200 });
    await page.getByRole('button', { name: 'Replay all matching' }).click();
    await page.getByRole('button', { name: 'Replay 40 dead letters' }).click();
    await page.getByText('Replay 40 dead letters').waitFor();
    await page.reload();
    await page.getByText('Replay 40 dead letters').waitFor();
    await page.getByText('40 replayed').waitFor();
    await page.getByRole('progressbar').waitFor();
    await page.getByText('No dead letters').waitFor();
    await receiver.waitFor(80);

    // A replay says before and after what it leaves out.
    receiver.answer({ status: 400 });
    await publish(posthorn, { type: 'order.created', tenant, data: {} });
    await receiver.waitFor(81);
    await posthorn.api('PATCH', `/v1/endpoints/${endpoint.id}`, { enabled: false });
    await page.getByRole('link', { name: /order.created/ }).waitFor();
    await page.getByRole('button', { name: 'Replay all matching' }).click();
    await page.getByText('Nothing will be sent').waitFor();
    await page.keyboard.press('Escape');
    const filter = { tenant, endpoint_id: endpoint.id };
    await posthorn.api('POST', '/v1/dead-letters/replay', { filter });
    await page.getByRole('link', { name: 'Tasks', exact: true }).click();
    const tasks = page.getByRole('table', { name: 'Tasks' });
    await tasks.getByText('0 replayed, 1 skipped: endpoint disabled or deleted').waitFor();
    await tasks.getByRole('link', { name: /Replay 40 dead letters/ }).click();
    await page.getByRole('heading', { name: 'Replay 40 dead letters' }).waitFor();
    await page.getByText('40 replayed').waitFor();
  });

  test('HLT-4: disabling asks first, says how many will be skipped and offers to pause; enabling offers to recover', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant, paused: true });
    for (let n = 0; n < 3; n += 1) await publish(posthorn, { type: 'order.created', tenant, data: n });

    const page = await browser.open(posthorn.key, `/endpoints/${id}`);
    await page.getByRole('button', { name: 'Resume' }).waitFor();
    await page.getByRole('button', { name: 'Disable…' }).click();
    await page.getByText('3 deliveries wait for it and will be skipped.').waitFor();
    expect(await page.getByRole('button', { name: 'Pause instead' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Disable endpoint' }).click();
    await page.getByRole('button', { name: 'Enable', exact: true }).waitFor();
    await publish(posthorn, { type: 'order.created', tenant, data: 3 });
    await page.getByText('Skipped while disabled').waitFor();
    await page.getByRole('definition').filter({ hasText: /^4$/ }).waitFor();

    await posthorn.api('PATCH', `/v1/endpoints/${id}`, { paused: false });
    await page.getByRole('button', { name: 'Enable', exact: true }).click();
    await page.getByRole('heading', { name: 'Recover skipped deliveries' }).waitFor();
    await page.getByRole('button', { name: 'Replay 4 deliveries' }).click();
    await receiver.waitFor(4);

    await page.goto(`${posthorn.url}/console/endpoints/${id}`);
    await page.getByRole('button', { name: 'Disable…' }).click();
    await page.getByText('No deliveries wait for it now.').waitFor();
    await page.getByRole('button', { name: 'Pause instead' }).click();
    await page.getByRole('button', { name: 'Resume' }).waitFor();
    expect((await posthorn.api('GET', `/v1/endpoints/${id}`)).body).toMatchObject({
      enabled: true,
      paused: true,
    });
  });
});

/** Asserts the error message of a field, found as a screen reader finds it. */
async function expectFieldError(
  field: import('playwright-core').Locator,
  page: import('playwright-core').Page,
  text: RegExp,
): Promise<void> {
  await page.locator('[aria-invalid="true"]').first().waitFor();
  const ids = ((await field.getAttribute('aria-describedby')) ?? '').split(' ');
  const error = ids.find((id) => id.endsWith('-error'));
  expect(error).toBeDefined();
  expect(await page.locator(`[id="${error}"]`).textContent()).toMatch(text);
}
