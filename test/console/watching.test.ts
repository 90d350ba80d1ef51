/** Seeing what happens while it happens, and the pages around it. */
import { describe, expect, test } from 'vitest';
import { createEndpoint, newReceiver, newTenant, publish, usePosthorn } from '../support/posthorn.ts';
import { needsBrowser, useBrowser } from './support/browser.ts';

const posthorn = usePosthorn({ env: { POSTHORN_STATS_CACHE_MS: '0' } });
const browser = useBrowser(() => posthorn.url);

describe('watching', needsBrowser(), () => {
  test('CON-5: an event that is published by hand shows up in the live tail, with its attempts', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    receiver.answer({ status: 500 });
    await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      retry: { schedule: [0, 0.1], jitter: 'none' },
    });
    const [watching, publishing] = await Promise.all([
      browser.open(posthorn.key, '/live'),
      browser.open(posthorn.key, '/events?publish=1'),
    ]);
    await watching.getByText('Live', { exact: true }).waitFor();
    const dialog = publishing.getByRole('dialog');
    await dialog.getByLabel('Type').fill('order.refused');
    await dialog.getByLabel('Tenant').fill(tenant);
    await publishing.getByRole('button', { name: 'Publish', exact: true }).click();
    await publishing.getByRole('heading', { name: 'order.refused' }).waitFor();

    const tail = watching.getByRole('log', { name: 'Live tail' });
    await tail.getByText('accepted').waitFor();
    await tail.getByText('retry').waitFor();
    await tail.getByText('dead', { exact: true }).waitFor();
    await watching.getByLabel('Kind').selectOption('failed');
    await tail.getByText('accepted').waitFor({ state: 'detached' });
    await tail.getByRole('link', { name: 'order.refused' }).first().click();
    await watching.getByText('The receiver failed · every attempt failed').waitFor();
  });

  test('CON-1: the overview counts what happened, failing endpoints first, and leads to it', async () => {
    const tenant = newTenant();
    const [good, bad] = [await newReceiver(), await newReceiver()];
    bad.answer({ status: 400 });
    await createEndpoint(posthorn, { url: good.url, tenant });
    await createEndpoint(posthorn, { url: bad.url, tenant });
    for (let n = 0; n < 5; n += 1) await publish(posthorn, { type: 'order.created', tenant, data: n });
    await Promise.all([good.waitFor(5), bad.waitFor(5)]);
    await posthorn.database.query(
      `insert into posthorn.relay_sources (name, mode, lag_seconds) values ('shop', 'poll', 41)`,
    );

    const page = await browser.open(posthorn.key);
    await page.getByRole('combobox', { name: 'Tenant' }).selectOption(tenant);
    const tile = (name: string) => page.getByRole('main').getByRole('link', { name: new RegExp(`^${name}`) });
    await tile('Publishing lag').getByText('1 relay source').waitFor();
    await tile('Dead letters').getByText('5', { exact: true }).waitFor();
    await tile('Success rate').getByText('50.0%').first().waitFor();
    await tile('Queue depth').getByText('nothing waits').waitFor();
    expect(await page.getByRole('figure').count()).toBe(4);
    const failing = page.getByRole('table', { name: 'Failing endpoints' });
    await failing.getByRole('link', { name: bad.url.replace(/^http:\/\/|\/$/g, '') }).click();
    await page.getByText('Failures in a row').waitFor();
    await page.getByRole('link', { name: 'Deliveries', exact: true }).click();
    await page.getByText('The receiver rejected it').first().waitFor();
  });

  test('CON-3: many events are scrolled with few rows in the page, without gap or repeat', async () => {
    const tenant = newTenant();
    for (let batch = 0; batch < 2; batch += 1) {
      const events = Array.from({ length: 350 }, (_, n) => ({ type: 'tick', tenant, data: batch * 350 + n }));
      await posthorn.api('POST', '/v1/events/batch', { events });
    }
    const page = await browser.open(posthorn.key);
    await page.getByRole('combobox', { name: 'Tenant' }).selectOption(tenant);
    await page.getByRole('link', { name: 'Events', exact: true }).click();
    const rows = page.getByRole('table', { name: 'Events' }).locator('tr.linked');
    await rows.first().waitFor();
    const seen = new Map<string, string>();
    await expect
      .poll(
        async () => {
          const shown = (await page.evaluate(
            '[...document.querySelectorAll("tr.linked")].map((row) => [row.ariaRowIndex ?? row.getAttribute("aria-rowindex"), row.querySelector("a").href])',
          )) as [string, string][];
          for (const [index, href] of shown) seen.set(href, index);
          expect(shown.length).toBeLessThan(120);
          await page.mouse.wheel(0, 700);
          return seen.size;
        },
        { timeout: 50_000, interval: 20 },
      )
      .toBe(700);
    await page.getByText('All 700').waitFor();
    expect(new Set(seen.values()).size).toBe(seen.size);
  });

  test('CON-2: a filter is tried on an event, refused where it is wrong, and saved', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant });
    const page = await browser.open(posthorn.key, `/endpoints/${id}?tab=filter`);
    await page.getByLabel('Filter (JSON)').fill('{"data.amount": {"$nonsense": 1}}');
    await page.getByRole('button', { name: 'Try it' }).click();
    await page.locator('[aria-invalid="true"]').waitFor();
    await page.getByLabel('Filter (JSON)').fill('{"data.amount": {"$gte": 100}}');
    await page.getByLabel('Try it on this event').fill('{"type": "a", "data": {"amount": 5}}');
    await page.getByRole('button', { name: 'Try it' }).click();
    await page.getByText(/This event would not be sent/).waitFor();
    await page.getByLabel('Try it on this event').fill('{"type": "a", "data": {"amount": 500}}');
    await page.getByRole('button', { name: 'Try it' }).click();
    await page.getByText('This event would be sent.').waitFor();
    await page.getByRole('button', { name: 'Save filter' }).click();
    await page.getByText(/Filter saved/).waitFor();
    expect((await posthorn.api('GET', `/v1/endpoints/${id}`)).body.filter).not.toBeNull();
  });

  test('CON-5: a key is made, shown once and revoked; an event type is described; the audit log has it all', async () => {
    const page = await browser.open(posthorn.key, '/keys');
    await page.getByRole('button', { name: 'Make a key' }).click();
    await page.getByRole('dialog').getByLabel('Tenant').fill('acme');
    await page.getByRole('dialog').getByLabel('Description').fill('Checkout');
    await page.getByRole('button', { name: 'Make key' }).click();
    const key = (await page.getByRole('button', { name: /^Copy the key/ }).textContent())!;
    expect((await posthorn.api('GET', '/v1/keys/current', undefined, { key })).body).toMatchObject({
      tenant: 'acme',
    });
    await page.getByRole('button', { name: 'I have it' }).click();
    expect(await page.content()).not.toContain(key);
    await page
      .getByRole('row', { name: /Checkout/ })
      .getByRole('button', { name: 'Revoke' })
      .click();
    await page.getByRole('button', { name: 'Revoke key' }).click();
    await page.getByText('No keys besides the first one').waitFor();
    expect((await posthorn.api('GET', '/v1/keys/current', undefined, { key })).status).toBe(401);

    await page.getByRole('link', { name: 'Event types', exact: true }).click();
    await page.getByRole('button', { name: 'Add event type' }).click();
    await page.getByLabel('Name').fill('order.created');
    await page.getByLabel('Description').fill('An order was placed.');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('row', { name: /An order was placed/ }).waitFor();

    await page.getByRole('link', { name: 'Audit log' }).click();
    for (const action of ['key.create', 'event_type.create']) await page.getByText(action).first().waitFor();
  });

  test('a connection that is lost is said, and found again', async () => {
    const page = await browser.open(posthorn.key, '/events');
    await page.getByRole('heading', { name: 'Events' }).waitFor();
    await page.context().setOffline(true);
    await page.getByText('Posthorn does not answer. Trying again…').first().waitFor();
    await page.context().setOffline(false);
    await page.getByText('Posthorn does not answer').waitFor({ state: 'detached' });
  });
});
