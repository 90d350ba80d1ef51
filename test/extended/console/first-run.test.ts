/** The first two minutes of a new user, who has no receiver. */
import { describe, expect, test } from 'vitest';
import { needsBrowser, useBrowser } from '../../console/support/browser.ts';
import { eventually } from '../../support/eventually.ts';
import { publish, usePosthorn } from '../../support/posthorn.ts';

const posthorn = usePosthorn({ env: { POSTHORN_INBOX: 'true', POSTHORN_STATS_FLUSH_MS: '100' } });
const browser = useBrowser(() => posthorn.url);

describe('first run', needsBrowser(), () => {
  test('CLI-3: the guided start shows delivery, retries, circuit breaker, dead letter and replay without a receiver', async () => {
    const page = await browser.open(posthorn.key);
    const sidebar = page.getByRole('navigation', { name: 'Pages' });
    await page.getByRole('link', { name: 'Start the guided tour' }).click();
    await page.getByRole('button', { name: 'Create inbox endpoint' }).click();
    await page.getByRole('button', { name: 'Publish test event' }).click();
    await page.getByText('Signature valid').waitFor();
    await page.getByText('Delivered', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Answer 503 and publish' }).click();
    await page.getByText('Retrying', { exact: true }).waitFor();
    await page.getByText('Three failures in a row').waitFor({ timeout: 20_000 });
    // Leaving the page and coming back keeps the progress.
    await sidebar.getByRole('link', { name: 'Overview' }).click();
    await sidebar.getByRole('link', { name: 'Guided start' }).click();
    await page.getByText(/gave up after 4 attempts/).waitFor({ timeout: 30_000 });
    await page.getByRole('button', { name: 'Answer 200 and replay' }).click();
    await page.getByText('The tour is complete').waitFor({ timeout: 20_000 });

    await page.getByRole('link', { name: 'Inbox', exact: true }).first().click();
    await page.getByRole('table', { name: 'Inboxes' }).getByRole('link').click();
    await page.getByText('6 requests received').waitFor();

    // The endpoint receives no other events, and cleaning up deletes the endpoint and the inbox.
    const { body: other } = await posthorn.api('POST', '/v1/events', { type: 'order.created', data: 3 });
    expect(other.deliveries).toBe(0);
    await sidebar.getByRole('link', { name: 'Overview' }).click();
    await sidebar.getByRole('link', { name: 'Guided start' }).click();
    await page.getByRole('button', { name: 'Finish and clean up' }).click();
    await page.getByText('Deleted the endpoint and the inbox of the tour').waitFor();
    expect((await posthorn.api('GET', '/v1/endpoints')).body.data).toEqual([]);
    expect((await posthorn.api('GET', '/v1/inboxes')).body.data).toEqual([]);
  });

  test('CLI-3: an inbox answers as configured, keeps the last 200 requests, and is visible to its tenant only', async () => {
    const created = await posthorn.api('POST', '/v1/inboxes', { tenant: 'acme' });
    expect(created.status).toBe(201);
    const { token, url } = created.body as { token: string; url: string };
    expect(url).toBe(`${posthorn.url}/inbox/${token}`);

    const send = (init: RequestInit = {}) => fetch(url, { method: 'POST', body: 'hello', ...init });
    expect((await send()).status).toBe(200);
    await posthorn.api('PATCH', `/v1/inboxes/${token}`, { status: 418 });
    expect((await send({ method: 'PUT', headers: { authorization: 'Bearer secret' } })).status).toBe(418);
    await posthorn.api('PATCH', `/v1/inboxes/${token}`, { reset: true });
    await expect(send()).rejects.toThrow();
    await posthorn.api('PATCH', `/v1/inboxes/${token}`, { reset: false, status: 200 });
    for (let sent = 0; sent < 250; sent += 1) await send();
    const { body } = await posthorn.api('GET', `/v1/inboxes/${token}/requests`);
    expect(body.data).toHaveLength(200);
    expect(body.data[0]).toMatchObject({
      number: 253,
      method: 'POST',
      body: 'hello',
      signature: { verdict: 'unknown' },
    });
    expect(JSON.stringify(body)).not.toContain('secret"');

    const { body: key } = await posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant: 'globex' });
    expect((await posthorn.api('GET', `/v1/inboxes/${token}`, undefined, { key: key.key })).status).toBe(404);
    expect((await posthorn.api('GET', '/v1/inboxes', undefined, { key: key.key })).body.data).toEqual([]);
    expect((await posthorn.api('DELETE', `/v1/inboxes/${token}`)).status).toBe(204);
    expect((await send()).status).toBe(404);
    expect((await posthorn.api('PATCH', `/v1/inboxes/${token}`, { status: 700 })).status).toBe(422);
  });

  test('CLI-3: an inbox reports the signature of a forged request as invalid', async () => {
    const { body: inbox } = await posthorn.api('POST', '/v1/inboxes', { tenant: 'initech' });
    const { body: endpoint } = await posthorn.api('POST', '/v1/endpoints', {
      url: inbox.url,
      tenant: 'initech',
    });
    const event = await publish(posthorn, { type: 'a', tenant: 'initech', data: 1 });
    const requests = () =>
      posthorn.api('GET', `/v1/inboxes/${inbox.token}/requests`).then(({ body }) => body.data);
    const [genuine] = await eventually('it arrives', async () => {
      const found = await requests();
      return found.length === 1 && found;
    });
    expect(genuine).toMatchObject({ signature: { verdict: 'valid' }, headers: { 'webhook-id': event.id } });
    const { 'content-length': _length, host: _host, ...headers } = genuine.headers as Record<string, string>;
    await fetch(inbox.url, { method: 'POST', headers, body: genuine.body.replace('1}', '2}') });
    expect((await requests())[0].signature.verdict).toBe('invalid');
    expect(endpoint.secret).toMatch(/^whsec_/);
  });
});
