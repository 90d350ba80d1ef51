/** Whose world a key shows, and what the page does to keep it. */
import { describe, expect, test } from 'vitest';
import {
  createEndpoint,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import { goTo, needsBrowser, signIn, useBrowser } from './support/browser.ts';

const posthorn = usePosthorn();
const browser = useBrowser(() => posthorn.url);

async function newKey(scope: string, tenant?: string): Promise<string> {
  const { body } = await posthorn.api('POST', '/v1/keys', { scope, ...(tenant !== undefined && { tenant }) });
  return body.key;
}

async function newDelivery(): Promise<{
  tenant: string;
  endpointId: string;
  eventId: string;
  deliveryId: string;
}> {
  const tenant = newTenant();
  const receiver = await newReceiver();
  const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant });
  const event = await publish(posthorn, { type: 'order.created', tenant, data: {} });
  const [delivery] = await untilDeliveries(posthorn, event.id, 'delivered');
  return { tenant, endpointId: id, eventId: event.id, deliveryId: delivery!.id };
}

describe('access to the console', needsBrowser(), () => {
  test('SEC-5: the key is in the memory of the tab and in no other place; a wrong one is refused', async () => {
    const page = await browser.open(null);
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    await page.getByLabel('API key').fill('phk_not-a-key');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('This key is not known').waitFor();
    expect(await page.evaluate('sessionStorage.length')).toBe(0);

    await signIn(page, posthorn.key);
    await page.reload();
    await page.getByRole('link', { name: 'Events', exact: true }).click();
    await page.getByRole('heading', { name: 'Events' }).waitFor();
    expect(page.url()).toBe(`${posthorn.url}/console/events`);
    expect(asked.filter((url) => url.includes(posthorn.key))).toEqual([]);
    expect(await page.evaluate('JSON.stringify(localStorage) + document.cookie')).not.toContain(posthorn.key);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key').waitFor();
    expect(await page.evaluate('JSON.stringify(sessionStorage)')).toBe('{}');
  });

  test('SEC-5: the page comes with a strict policy, its files for ever, and nothing is taken for a page that is none', async () => {
    const index = await fetch(`${posthorn.url}/console/events/evt_1?x=y`);
    expect(index.status).toBe(200);
    const policy = index.headers.get('content-security-policy')!;
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'");
    expect(policy).not.toMatch(/unsafe|\*/);
    expect(index.headers.get('cache-control')).toBe('no-cache');
    const html = await index.text();
    expect(html).not.toMatch(/<script(?![^>]*\bsrc=)|style=|<style/);
    const script = /src="([^"]+\.js)"/.exec(html)![1]!;
    const file = await fetch(posthorn.url + script, { headers: { 'accept-encoding': 'gzip' } });
    expect(file.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(Number(file.headers.get('content-length'))).toBeLessThan(250_000);
    const again = await fetch(posthorn.url + script, {
      headers: { 'if-none-match': file.headers.get('etag')! },
    });
    expect(again.status).toBe(304);
    for (const path of [
      '/console/assets/x.js',
      '/console/assets/../../package.json',
      '/console/assets/%2e%2e/index.html',
    ])
      expect((await fetch(posthorn.url + path)).status, path).toBeLessThan(500);
    expect((await fetch(`${posthorn.url}/console/assets/none.js`)).status).toBe(404);
    expect((await fetch(`${posthorn.url}/console`, { method: 'POST' })).status).toBeGreaterThanOrEqual(400);
  });

  test('SEC-2: a tenant key shows its world, and finds nothing of another', async () => {
    const [mine, theirs] = [await newDelivery(), await newDelivery()];
    const page = await browser.open(await newKey('tenant', mine.tenant), '/endpoints');
    await page.getByText(mine.tenant, { exact: true }).first().waitFor();
    const endpoints = page.getByRole('table', { name: 'Endpoints' });
    await endpoints.getByRole('link').first().waitFor();
    expect(await endpoints.getByRole('link').count()).toBe(1);
    expect(await page.getByRole('combobox', { name: 'Tenant' }).count()).toBe(0);
    expect(await page.getByRole('link', { name: 'API keys' }).count()).toBe(0);
    for (const place of [
      `/events/${theirs.eventId}`,
      `/endpoints/${theirs.endpointId}`,
      `/deliveries/${theirs.deliveryId}`,
    ]) {
      await page.keyboard.press('Control+k');
      await page.keyboard.insertText(place.split('/').at(-1)!);
      await page.keyboard.press('Enter');
      await page.getByText('Not found').waitFor();
    }
    await page.goto(`${posthorn.url}/console/events/${mine.eventId}`);
    await page.getByRole('button', { name: 'Send again' }).waitFor();
  });

  test('a read-only key sees no button that it cannot use', async () => {
    const { eventId, endpointId } = await newDelivery();
    const page = await browser.open(await newKey('read'));
    const buttons = async () => (await page.getByRole('button').allTextContents()).join(' ');
    for (const [path, there] of [
      ['/endpoints', 'Healthy'],
      [`/endpoints/${endpointId}`, 'Recent deliveries'],
      [`/endpoints/${endpointId}?tab=configuration`, 'Destination'],
      ['/events', 'order.created'],
      [`/events/${eventId}`, 'Delivered'],
      ['/dead-letters', 'No dead letters'],
      ['/event-types', 'catalogue'],
    ] as const) {
      await goTo(page, path);
      await page.getByText(there).first().waitFor();
      expect(await buttons(), path).not.toMatch(
        /replay|discard|add |publish|send|pause|disable|delete|rotate|reveal|save|edit/i,
      );
    }
  });

  test('a key that is revoked while somebody looks ends the session, and says so', async () => {
    const { body } = await posthorn.api('POST', '/v1/keys', { scope: 'read' });
    const page = await browser.open(body.key, '/events');
    await page.getByRole('heading', { name: 'Events' }).waitFor();
    await posthorn.api('DELETE', `/v1/keys/${body.id}`);
    await page.getByText('Your key is not accepted any more').waitFor();
    await page.getByLabel('API key').waitFor();
  });
});
