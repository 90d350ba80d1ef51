/** What each kind of key shows, and how the page protects it. */
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

async function createKey(scope: string, tenant?: string): Promise<string> {
  const { body } = await posthorn.api('POST', '/v1/keys', { scope, ...(tenant !== undefined && { tenant }) });
  return body.key;
}

async function createDelivery(): Promise<{
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

describe('console access', needsBrowser(), () => {
  test('SEC-5: the key is stored in the tab only, and an unknown key cannot sign in', async () => {
    const page = await browser.open(null);
    const requestedUrls: string[] = [];
    page.on('request', (request) => requestedUrls.push(request.url()));
    await page.getByLabel('API key').fill('phk_not-a-key');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('This key is unknown').waitFor();
    expect(await page.evaluate('sessionStorage.length')).toBe(0);

    await signIn(page, posthorn.key);
    await page.reload();
    await page.getByRole('link', { name: 'Events', exact: true }).click();
    await page.getByRole('heading', { name: 'Events' }).waitFor();
    expect(page.url()).toBe(`${posthorn.url}/console/events`);
    expect(requestedUrls.filter((url) => url.includes(posthorn.key))).toEqual([]);
    expect(await page.evaluate('JSON.stringify(localStorage) + document.cookie')).not.toContain(posthorn.key);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key').waitFor();
    expect(await page.evaluate('JSON.stringify(sessionStorage)')).toBe('{}');
  });

  test('CON-7: the console works in a browser whose language tag is invalid', async () => {
    const page = await browser.open(null);
    // Chromium reports this tag where no locale is set.
    await page.addInitScript(
      "Object.defineProperty(Navigator.prototype, 'language', { get: () => 'en-US@posix', configurable: true })",
    );
    await page.reload();
    expect(await page.evaluate('Object.getPrototypeOf(navigator).language')).toBe('en-US@posix');
    await signIn(page, posthorn.key);
  });

  test('SEC-5: the page has a strict content security policy, its assets are cached forever, and unknown assets are not found', async () => {
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
    const revalidated = await fetch(posthorn.url + script, {
      headers: { 'if-none-match': file.headers.get('etag')! },
    });
    expect(revalidated.status).toBe(304);
    for (const path of [
      '/console/assets/x.js',
      '/console/assets/../../package.json',
      '/console/assets/%2e%2e/index.html',
    ])
      expect((await fetch(posthorn.url + path)).status, path).toBeLessThan(500);
    expect((await fetch(`${posthorn.url}/console/assets/none.js`)).status).toBe(404);
    expect((await fetch(`${posthorn.url}/console`, { method: 'POST' })).status).toBeGreaterThanOrEqual(400);
  });

  test('SEC-2: a tenant key shows its own tenant, and finds nothing of another tenant', async () => {
    const [mine, theirs] = [await createDelivery(), await createDelivery()];
    const page = await browser.open(await createKey('tenant', mine.tenant), '/endpoints');
    await page.getByText(mine.tenant, { exact: true }).first().waitFor();
    const endpoints = page.getByRole('table', { name: 'Endpoints' });
    await endpoints.getByRole('link').first().waitFor();
    expect(await endpoints.getByRole('link').count()).toBe(1);
    expect(await page.getByRole('combobox', { name: 'Tenant' }).count()).toBe(0);
    expect(await page.getByRole('link', { name: 'API keys' }).count()).toBe(0);
    for (const path of [
      `/events/${theirs.eventId}`,
      `/endpoints/${theirs.endpointId}`,
      `/deliveries/${theirs.deliveryId}`,
    ]) {
      await page.keyboard.press('Control+k');
      await page.keyboard.insertText(path.split('/').at(-1)!);
      await page.keyboard.press('Enter');
      await page.getByText('Not found').waitFor();
    }
    await page.goto(`${posthorn.url}/console/events/${mine.eventId}`);
    await page.getByRole('button', { name: 'Send again' }).waitFor();
  });

  test('a read-only key sees no button for something it is not allowed to do', async () => {
    const { eventId, endpointId } = await createDelivery();
    const page = await browser.open(await createKey('read'));
    const buttonTexts = async () => (await page.getByRole('button').allTextContents()).join(' ');
    for (const [path, content] of [
      ['/endpoints', 'Last 24 h'],
      [`/endpoints/${endpointId}`, 'Recent deliveries'],
      [`/endpoints/${endpointId}?tab=configuration`, 'Destination'],
      ['/events', 'order.created'],
      [`/events/${eventId}`, 'Delivered'],
      ['/dead-letters', 'No dead letters'],
      ['/event-types', 'catalogue'],
    ] as const) {
      await goTo(page, path);
      await page.getByText(content).first().waitFor();
      expect(await buttonTexts(), path).not.toMatch(
        /replay|discard|add |publish|send|pause|disable|delete|rotate|reveal|save|edit/i,
      );
    }
  });

  test('SEC-3, CON-6: the link of a portal session opens the console of one tenant, with what its capabilities allow', async () => {
    const { tenant, eventId, endpointId } = await createDelivery();
    const capabilities = ['endpoints:read', 'deliveries:read', 'deliveries:replay', 'events:read'];
    const appearance = { theme: 'dark', accent: '#0f766e' };
    const { body } = await posthorn.api('POST', '/v1/portal-sessions', { tenant, capabilities, appearance });
    const page = await browser.open(null);
    const requestedUrls: string[] = [];
    page.on('request', (request) => requestedUrls.push(request.url()));
    await page.goto('about:blank');
    await page.goto(body.url);
    await page.getByText('Portal session').waitFor();
    expect(page.url()).toBe(`${posthorn.url}/console`);
    expect(requestedUrls.filter((url) => url.includes(body.token))).toEqual([]);
    expect(await page.evaluate('JSON.stringify(localStorage)')).not.toContain(body.token);
    expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark');
    expect(
      await page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--accent')"),
    ).toBe('#0f766e');
    const links = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents();
    expect(links).toEqual([
      'Webhooks',
      ...['Overview', 'Events', 'Endpoints', 'Dead letters', 'Tasks', 'Live tail', 'Notices'],
    ]);

    await goTo(page, `/endpoints/${endpointId}`);
    await page.getByText('Recent deliveries').waitFor();
    await page.getByRole('button', { name: 'Replay…' }).waitFor();
    for (const name of ['Send test event', 'Pause', 'Disable…', 'Delete endpoint', 'Rotate…', 'Reveal'])
      expect(await page.getByRole('button', { name }).count(), name).toBe(0);
    await page.reload();
    await goTo(page, `/events/${eventId}`);
    await page.getByRole('button', { name: 'Send again' }).waitFor();

    await posthorn.api('DELETE', `/v1/portal-sessions/${body.id}`);
    await page.getByText('This session has ended').waitFor();
    expect(await page.getByLabel('API key').count()).toBe(0);
  });

  test('a key that may not read deliveries starts at the first page that it may open', async () => {
    const settings = { scope: 'admin', scopes: ['endpoints:read'] };
    const { body } = await posthorn.api('POST', '/v1/keys', settings);
    const page = await browser.open(body.key);
    await page.getByRole('heading', { name: 'Endpoints', level: 1 }).waitFor();
    const links = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents();
    expect(links).toEqual(['Posthorn', 'Endpoints', 'Notices', 'Guide', 'API reference']);
  });

  test('revoking a key ends its open session with a message', async () => {
    const { body } = await posthorn.api('POST', '/v1/keys', { scope: 'read' });
    const page = await browser.open(body.key, '/events');
    await page.getByRole('heading', { name: 'Events' }).waitFor();
    await posthorn.api('DELETE', `/v1/keys/${body.id}`);
    await page.getByText('Your key is no longer accepted').waitFor();
    await page.getByLabel('API key').waitFor();
  });
});
