/** Live tail, overview, lists, filters, keys, event types and audit log. */
import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { needsBrowser, useBrowser } from '../../console/support/browser.ts';
import { createEndpoint, newReceiver, newTenant, publish, usePosthorn } from '../../support/posthorn.ts';

const posthorn = usePosthorn({ env: { POSTHORN_STATS_CACHE_MS: '0' } });
const browser = useBrowser(() => posthorn.url);

describe('monitoring in the console', needsBrowser(), () => {
  test('CON-5: the live tail shows an event that was published in the console, and its attempts', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    receiver.answer({ status: 500 });
    await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      retry: { schedule: [0, 0.1], jitter: 'none' },
    });
    const [tailPage, publishPage] = await Promise.all([
      browser.open(posthorn.key, '/live'),
      browser.open(posthorn.key, '/events?publish=1'),
    ]);
    await tailPage.getByText('Live', { exact: true }).waitFor();
    const dialog = publishPage.getByRole('dialog');
    await dialog.getByLabel('Type').fill('order.refused');
    await dialog.getByLabel('Tenant').fill(tenant);
    await publishPage.getByRole('button', { name: 'Publish', exact: true }).click();
    await publishPage.getByRole('heading', { name: 'order.refused' }).waitFor();

    const tail = tailPage.getByRole('log', { name: 'Live tail' });
    await tail.getByText('accepted').waitFor();
    await tail.getByText('retry').waitFor();
    await tail.getByText('dead', { exact: true }).waitFor();
    // On a phone the time is below the badge, and the endpoint is visible.
    await tailPage.setViewportSize({ width: 390, height: 844 });
    const [badge, time] = [tail.locator('.badge').first(), tail.locator('.tail-time').first()];
    await expect
      .poll(async () => (await time.boundingBox())!.y - (await badge.boundingBox())!.y, { timeout: 10_000 })
      .toBeGreaterThan(10);
    await tail.getByText('#1 · 500').first().waitFor();
    await tailPage.setViewportSize({ width: 1280, height: 860 });
    await tailPage.getByLabel('Kind').selectOption('failed');
    await tail.getByText('accepted').waitFor({ state: 'detached' });
    await tail.getByRole('link', { name: 'order.refused' }).first().click();
    await tailPage.getByText('The receiver failed · every attempt failed').waitFor();
  });

  test('CON-1: the overview shows the statistics, and links failing endpoints by their description', async () => {
    const tenant = newTenant();
    const [good, bad, down] = [await newReceiver(), await newReceiver(), await newReceiver()];
    bad.answer({ status: 400 });
    down.answer({ status: 503 });
    await createEndpoint(posthorn, { url: good.url, tenant });
    await createEndpoint(posthorn, { url: bad.url, tenant, description: 'Broken shop' });
    const retry = { schedule: [0, 3600], jitter: 'none' };
    await createEndpoint(posthorn, {
      url: down.url,
      tenant,
      description: 'Shop that is down',
      retry,
      breaker: null,
    });
    await createEndpoint(posthorn, {
      url: `${good.url}/unused`,
      tenant,
      description: 'Unused',
      events: ['none'],
    });
    for (let n = 0; n < 5; n += 1) await publish(posthorn, { type: 'order.created', tenant, data: n });
    await Promise.all([good.waitFor(5), bad.waitFor(5), down.waitFor(5)]);
    await posthorn.database.query(
      `insert into posthorn.relay_sources (name, mode, lag_seconds) values ('shop', 'poll', 41)`,
    );

    const page = await browser.open(posthorn.key);
    await page.getByRole('combobox', { name: 'Tenant' }).selectOption(tenant);
    const tile = (name: string) => page.getByRole('main').getByRole('link', { name: new RegExp(`^${name}`) });
    await tile('Publishing lag').getByText('1 relay source').waitFor();
    await tile('Dead letters').getByText('5', { exact: true }).waitFor();
    // 5 delivered, 5 dead, and 5 that fail now and will be retried.
    await tile('Success rate').getByText('33.3%').first().waitFor();
    await tile('Success rate').getByText('5 failing now').waitFor();
    await tile('Queue depth').getByText('5 retrying').waitFor();
    expect(await page.getByRole('figure').count()).toBe(4);
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Endpoints' }).click();
    const endpoints = page.getByRole('table', { name: 'Endpoints' });
    await endpoints.getByRole('button', { name: 'Dead' }).click();
    await expect.poll(() => endpoints.locator('tr.linked').first().textContent()).toContain('Broken shop');
    await page.getByRole('combobox', { name: 'State' }).selectOption('Idle');
    await expect
      .poll(() => endpoints.locator('tr.linked').allTextContents())
      .toEqual([expect.stringContaining('Unused')]);
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Overview' }).click();
    const failing = page.getByRole('table', { name: 'Failing endpoints' });
    await failing
      .getByRole('row', { name: /Shop that is down/ })
      .getByText('Failing')
      .waitFor();
    await page.getByRole('button', { name: 'From–to' }).click();
    await page.getByLabel('To', { exact: true }).fill('2099-01-01T00:00');
    await tile('Throughput')
      .getByText(/15 in .* to |5 in .* to /)
      .waitFor();
    await page.getByRole('button', { name: '1 hour' }).click();
    await failing.getByRole('link', { name: /Broken shop/ }).click();
    await page.getByText('Consecutive failures').waitFor();
    await page.getByRole('link', { name: 'Deliveries', exact: true }).click();
    await page.getByText('The receiver rejected the request').first().waitFor();
  });

  test('CON-3: scrolling through 700 events shows each once, with few rows in the document', async () => {
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

  test('CON-2: a filter is validated, tried on a sample event, and saved', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant });
    const page = await browser.open(posthorn.key, `/endpoints/${id}?tab=filter`);
    await page.getByLabel('Filter (JSON)').fill('{"data.amount": {"$nonsense": 1}}');
    await page.getByRole('button', { name: 'Try filter' }).click();
    await page.locator('[aria-invalid="true"]').waitFor();
    await page.getByLabel('Filter (JSON)').fill('{"data.amount": {"$gte": 100}}');
    await page.getByLabel('Sample event (JSON)').fill('{"type": "a", "data": {"amount": 5}}');
    await page.getByRole('button', { name: 'Try filter' }).click();
    await page.getByText(/This event would not be sent/).waitFor();
    await page.getByLabel('Sample event (JSON)').fill('{"type": "a", "data": {"amount": 500}}');
    await page.getByRole('button', { name: 'Try filter' }).click();
    await page.getByText('This event would be sent.').waitFor();
    await page.getByRole('button', { name: 'Save filter' }).click();
    await page.getByText(/Filter saved/).waitFor();
    expect((await posthorn.api('GET', `/v1/endpoints/${id}`)).body.filter).not.toBeNull();
  });

  test('CON-5: a key is created, shown once and revoked; an event type is added; the audit log records both', async () => {
    const page = await browser.open(posthorn.key, '/keys');
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('dialog').getByLabel('Tenant').fill('acme');
    await page.getByRole('dialog').getByLabel('Description').fill('Checkout');
    await page.getByRole('dialog').getByLabel('Publish events').check();
    await page.getByRole('dialog').getByLabel('Expires at').fill('2999-01-31T12:00');
    await page.getByRole('dialog').getByLabel('Allowed IP addresses').fill('127.0.0.0/8, ::1');
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    const key = (await page.getByRole('button', { name: /^Copy the key/ }).textContent())!;
    expect((await posthorn.api('GET', '/v1/keys/current', undefined, { key })).body).toMatchObject({
      tenant: 'acme',
      scopes: ['events:publish'],
    });
    await page.getByRole('button', { name: 'Done' }).click();
    expect(await page.content()).not.toContain(key);
    await page
      .getByRole('row', { name: /Checkout/ })
      .getByRole('button', { name: 'Revoke' })
      .click();
    await page.getByRole('button', { name: 'Revoke key' }).click();
    await page.getByText('No keys yet').waitFor();
    expect((await posthorn.api('GET', '/v1/keys/current', undefined, { key })).status).toBe(401);

    await page.getByRole('link', { name: 'Event types', exact: true }).click();
    await page.getByRole('button', { name: 'Add event type' }).click();
    await page.getByLabel('Name').fill('order.created');
    await page.getByLabel('Description').fill('An order was placed.');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('row', { name: /An order was placed/ }).waitFor();

    await page.getByRole('link', { name: 'Audit log' }).click();
    const entries = page.getByRole('table', { name: 'Audit log' });
    for (const action of ['key.create', 'event_type.create'])
      await entries.getByText(action).first().waitFor();
    await page.getByRole('combobox', { name: 'Action' }).selectOption('event_type.create');
    await entries.getByText('key.create').first().waitFor({ state: 'detached' });
    const download = page.waitForEvent('download');
    await page.getByRole('combobox', { name: 'Export this list' }).selectOption('csv');
    const lines = (await readFile(await (await download).path(), 'utf8')).trim().split('\r\n');
    expect(lines[0]).toMatch(/^id,created_at,action,/);
    expect(lines.slice(1).every((line) => line.includes(',event_type.create,'))).toBe(true);

    await page.getByRole('link', { name: 'Tenants', exact: true }).click();
    await page.getByRole('button', { name: 'Events of acme' }).click();
    await page.getByRole('heading', { name: 'Events' }).waitFor();
    expect(await page.getByRole('combobox', { name: 'Tenant' }).inputValue()).toBe('acme');
    const reference = page.getByRole('link', { name: 'API reference' });
    expect(await (await fetch(posthorn.url + (await reference.getAttribute('href')))).text()).toContain(
      'listEvents',
    );
    expect(await page.getByRole('link', { name: 'Guide' }).getAttribute('href')).toBe('/docs/guide');
  });

  test('a lost connection shows a notice until the server answers again', async () => {
    const page = await browser.open(posthorn.key, '/events');
    await page.getByRole('heading', { name: 'Events' }).waitFor();
    await page.context().setOffline(true);
    await page.getByText('Posthorn does not answer. Retrying…').first().waitFor();
    await page.context().setOffline(false);
    await page.getByText('Posthorn does not answer').waitFor({ state: 'detached' });
  });
});
