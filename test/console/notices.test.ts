/** The page with notifiers, and the field for headers that are no secret. */
import { describe, expect, test } from 'vitest';
import { createEndpoint, newReceiver, newTenant, usePosthorn } from '../support/posthorn.ts';
import { goTo, needsBrowser, useBrowser } from './support/browser.ts';

const posthorn = usePosthorn();
const browser = useBrowser(() => posthorn.url);

describe('console: notices', needsBrowser(), () => {
  test('OBS-4: a notifier is created, tested and deleted', async () => {
    const chat = await newReceiver();
    const page = await browser.open(posthorn.key, '/notices');
    await page.getByRole('button', { name: 'Create notifier' }).first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Webhook URL').fill('https://10.0.0.1/');
    await dialog.getByRole('button', { name: 'Create notifier' }).click();
    await dialog.locator('.field-error').getByText('reserved address').waitFor();
    await dialog.getByLabel('Webhook URL').fill(`${chat.url}/services/x`);
    await dialog.getByLabel('Description').fill('#operations');
    await dialog.getByLabel('Report all tenants').check();
    await dialog.getByRole('button', { name: 'Create notifier' }).click();
    const row = page.getByRole('row', { name: /#operations/ });
    await row.getByText('active').waitFor();
    await row.getByRole('button', { name: 'Test' }).click();
    const [request] = await chat.waitFor(1);
    expect(request!.json().text).toContain('test message');
    await row.getByRole('link', { name: 'See result' }).click();
    await page.getByText('posthorn.notice').first().waitFor();
    await goTo(page, '/notices');
    await row.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete notifier' }).click();
    await page.getByText('Nobody gets notices yet').waitFor();
  });

  test('the endpoint form says which headers are no secret', async () => {
    const tenant = newTenant();
    const headers = { 'x-env': 'staging', 'x-functions-key': 'secret' };
    const { id } = await createEndpoint(posthorn, { url: 'https://example.com/', tenant, headers });
    const page = await browser.open(posthorn.key, `/endpoints/${id}?tab=configuration`);
    await page.getByText('Access', { exact: true }).click();
    await page.getByLabel('Headers without secrets').fill('x-env');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('saved').first().waitFor();
    const { body } = await posthorn.api('GET', `/v1/endpoints/${id}`);
    expect(body).toMatchObject({ headers, plain_headers: ['x-env'] });
  });
});
