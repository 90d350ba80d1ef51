/** What somebody does who wants to know what became of an event. */
import { describe, expect, test } from 'vitest';
import {
  createEndpoint,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import { Hand, needsBrowser, useBrowser } from './support/browser.ts';

const posthorn = usePosthorn({ env: { POSTHORN_STATS_FLUSH_MS: '100' } });
const browser = useBrowser(() => posthorn.url);

/** The last attempt comes when the receiver has long been asked for the first. */
const TWO_TRIES = { schedule: [0, 0.2], jitter: 'none' };

describe('deliveries in the console', needsBrowser(), () => {
  test('CON-3: from sign-in with an event id, three interactions to status and hint, two more to its replay', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    receiver.answer({ status: 503, body: 'out of order' });
    await createEndpoint(posthorn, { url: receiver.url, tenant, retry: TWO_TRIES });
    const event = await publish(posthorn, { type: 'order.created', tenant, data: { order: 42 } });
    await untilDeliveries(posthorn, event.id, 'dead');

    const page = await browser.open(posthorn.key);
    const hand = new Hand(page);
    await hand.press('Control+k');
    await hand.paste(event.id);
    await hand.press('Enter');
    await page.getByText('The receiver failed · every attempt failed').waitFor();
    await page.getByText('Look into its logs at the time of the attempt.').first().waitFor();
    await page.getByText('Dead', { exact: true }).first().waitFor();
    expect(hand.count).toBeLessThanOrEqual(3);

    receiver.answer({ status: 200 });
    const replaying = new Hand(page);
    await replaying.click('button', 'Replay');
    await page.getByText('Delivered', { exact: true }).first().waitFor();
    expect(replaying.count).toBeLessThanOrEqual(2);
    await untilDeliveries(posthorn, event.id, 'delivered');
    expect(receiver.requests).toHaveLength(3);
  });

  test('CON-3: an attempt shows what was sent and what was answered; large numbers stay what they are', async () => {
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
    await page.getByText(/Waiting for the answer/).waitFor();
  });

  test('CON-2: an endpoint is added, refuses what the API refuses at its field, and gets a test event', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    const page = await browser.open(posthorn.key, '/endpoints/new');
    await page.getByLabel('URL').fill('http://169.254.169.254/');
    await page.getByLabel('Tenant', { exact: true }).last().fill(tenant);
    await page.getByRole('button', { name: 'Add endpoint' }).click();
    await expectDescription(page.getByLabel('URL'), page, /reserved address/);
    await page.getByLabel('URL').fill(receiver.url);
    await page.getByRole('button', { name: 'Add endpoint' }).click();
    await page.getByRole('heading', { name: receiver.url.replace(/^http:\/\/|\/$/g, '') }).waitFor();

    await page.getByRole('button', { name: 'Send test event' }).click();
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await page.getByText('It arrived').waitFor();
    await receiver.waitFor(1);
    await page.getByRole('link', { name: 'Show request and response' }).click();
    await page.getByRole('heading', { name: 'posthorn.test' }).waitFor();
    await page.goBack();

    await page.getByRole('link', { name: 'Configuration' }).click();
    await page.getByLabel('Timeout (ms)').fill('5');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await expectDescription(page.getByLabel('Timeout (ms)'), page, /1000/);
    await page.getByLabel('Timeout (ms)').fill('2000');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Saved', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('nothing is sent until it is resumed').waitFor();
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByText('Healthy').waitFor();
    const id = page.url().match(/ep_\w+/)![0];
    const { body } = await posthorn.api('GET', `/v1/endpoints/${id}`);
    expect(body).toMatchObject({ tenant, timeout_ms: 2000, paused: false });
  });

  test('CON-2: a secret is revealed and rotated, and both sign during the overlap', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    const endpoint = await createEndpoint(posthorn, { url: receiver.url, tenant });
    const page = await browser.open(posthorn.key, `/endpoints/${endpoint.id}?tab=configuration`);
    expect(await page.content()).not.toContain(endpoint.secret);
    await page.getByRole('button', { name: 'Reveal' }).click();
    await page.getByText(endpoint.secret).waitFor();
    await page.getByRole('button', { name: 'Rotate…' }).click();
    await page.getByRole('button', { name: 'Rotate secret' }).click();
    await page.getByText('Two secrets sign just now').waitFor();
    const shown = await page.getByRole('button', { name: 'Copy the secret' }).textContent();
    expect(shown).toMatch(/^whsec_/);
    expect(shown).not.toBe(endpoint.secret);
    const { body } = await posthorn.api('GET', `/v1/endpoints/${endpoint.id}/secret`);
    expect(body.secret).toBe(shown);
    await publish(posthorn, { type: 'a', tenant, data: 1 });
    const [request] = await receiver.waitFor(1);
    expect(request!.headers['webhook-signature']!.split(' ')).toHaveLength(2);
    await page.getByRole('button', { name: 'Revoke the old one now' }).click();
    await page.getByText('Two secrets sign just now').waitFor({ state: 'detached' });
  });

  test('CON-4: dead letters in groups, replayed in bulk with a progress that survives a reload; a discard is undone', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    receiver.answer({ status: 400 });
    await createEndpoint(posthorn, { url: receiver.url, tenant, max_in_flight: 50, breaker: null });
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
      .getByRole('row', { name: /the receiver rejected it/ })
      .getByText('40', { exact: true })
      .waitFor();
    await page
      .getByRole('row', { name: /the receiver rejected it/ })
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
    await page.getByText('Back among the dead letters').waitFor();
    await page.goBack();

    receiver.answer({ status: 200 });
    await page.getByRole('button', { name: 'Replay all matching' }).click();
    await page.getByRole('button', { name: 'Replay 40 dead letters' }).click();
    await page.getByText('Replay of 40 dead letters').waitFor();
    await page.reload();
    await page.getByText('Replay of 40 dead letters').waitFor();
    await page.getByText('40 done').waitFor();
    await page.getByRole('progressbar').waitFor();
    await page.getByText('No dead letters').waitFor();
    await receiver.waitFor(80);
  });
});

/** The message that belongs to a field, as a screen reader finds it. */
async function expectDescription(
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
