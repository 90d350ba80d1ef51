/** Versions in the console: the fields of a schema, any two versions, and payloads as endpoints with a pin get them. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { findViolations, needsBrowser, useBrowser } from '../../console/support/browser.ts';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../../support/posthorn.ts';

const TYPE = 'invoice.paid';
const folder = mkdtempSync(path.join(tmpdir(), 'posthorn-console-'));
const config = path.join(folder, 'posthorn.config.ts');
writeFileSync(
  config,
  `export default { converters: { '${TYPE}': {
     'v3->v2': (data) => ({ id: data.id, total: data.amount }),
     'v2->v1': (data) => ({ id: String(data.id) }),
   } } };`,
);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const posthorn = usePosthorn({ env: { POSTHORN_CONFIG: config, POSTHORN_CONVERTER_TIMEOUT_MS: '5s' } });
const browser = useBrowser(() => posthorn.url);

const SCHEMAS = {
  v1: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } },
  v2: { type: 'object', properties: { id: { type: 'integer' }, total: { type: 'number' } } },
  v3: {
    type: 'object',
    required: ['id', 'amount'],
    properties: { id: { type: 'integer', description: 'The invoice.' }, amount: { type: 'number' } },
  },
};

async function putVersions(): Promise<void> {
  for (const [version, schema] of Object.entries(SCHEMAS)) {
    const address = `/v1/event-types/${TYPE}/versions/${version}`;
    const { status, text } = await posthorn.api('PUT', address, { schema });
    expect([200, 201], text).toContain(status);
  }
}

describe('versions in the console', needsBrowser(), () => {
  test('VER-3: fields of a schema, any two versions, pins, and a payload converted to every pin', async () => {
    await putVersions();
    const tenant = newTenant();
    const { url } = await newReceiver();
    for (const api_version of ['v1', 'v2'])
      await createEndpoint(posthorn, {
        url: `${url}/${api_version}`,
        tenant,
        description: `Pins ${api_version}`,
        api_version,
      });
    const page = await browser.open(posthorn.key, `/event-types/${TYPE}`);
    const fields = page.getByRole('table', { name: 'Fields of v3' });
    await fields.getByRole('row', { name: 'id integer yes The invoice.' }).waitFor();

    const compare = page.locator('.card').filter({ hasText: 'Compare versions' });
    await compare.getByText('Changes since v1').waitFor();
    await compare.getByLabel('From version').selectOption('v2');
    await compare.getByText('Changes since v2').waitFor();

    const pins = page.getByRole('table', { name: 'Endpoints with a pinned version' });
    await pins.getByRole('row', { name: /Pins v1.* v1 v1 \(active\)/ }).waitFor();

    await page.getByLabel('Data (JSON)').fill('{"id":7,"amount":9}');
    await page.getByLabel('Written in version').selectOption('v3');
    await page.getByLabel('Convert to version').selectOption({ label: 'Every version that endpoints pin' });
    await page.getByRole('button', { name: 'Check' }).click();
    await page.getByText('checked against v3').waitFor();
    await page.getByRole('heading', { name: 'Converted to v2' }).waitFor();
    await page.getByRole('heading', { name: 'Converted to v1' }).waitFor();
    const shown = await page.locator('.card').filter({ hasText: 'Try a payload' }).textContent();
    expect(shown?.replace(/\s/g, '')).toMatch(/"total":9.*"id":"7"/);
    expect(await findViolations(page)).toEqual([]);
  });

  test('VER-2: the form of a type sets its sunset, and its page shows it with the endpoints that subscribe', async () => {
    const type = 'invoice.archived';
    await expectStatus(posthorn.api('PUT', `/v1/event-types/${type}`, { schema: SCHEMAS.v1 }), 201);
    const tenant = newTenant();
    const url = 'https://example.com/';
    await createEndpoint(posthorn, { url, tenant, description: 'Subscribes', events: ['invoice.*'] });
    await createEndpoint(posthorn, { url, tenant, description: 'Does not', events: ['order.*'] });
    const page = await browser.open(posthorn.key, '/event-types');
    const row = page.getByRole('row', { name: new RegExp(type) });
    await row.getByText('Schema').waitFor();
    await row.getByRole('link', { name: type }).click();
    await page.getByRole('table', { name: 'Fields of the type' }).getByText('string').waitFor();

    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    const form = page.getByRole('dialog');
    await form.getByLabel('Deprecated').check();
    await form.getByLabel(/^Sunset/).fill('2999-01-31T00:00');
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByText(/Sunset: 31 Jan 2999/).waitFor();
    const stored = (await posthorn.api('GET', `/v1/event-types/${type}`)).body;
    expect(stored).toMatchObject({ deprecated: true, schema: SCHEMAS.v1 });
    expect(new Date(stored.sunset_at).getFullYear()).toBe(2999);

    await page.getByRole('link', { name: 'Endpoints that subscribe' }).click();
    await page.getByText(`Only endpoints that subscribe to ${type}.`).waitFor();
    await page.getByRole('row', { name: /Subscribes/ }).waitFor();
    expect(await page.getByRole('row', { name: /Does not/ }).count()).toBe(0);
    expect(await findViolations(page)).toEqual([]);
    await page.getByRole('link', { name: 'Show all' }).click();
    await page.getByRole('row', { name: /Does not/ }).waitFor();
  });

  test('VER-2: the form compares the payloads of a recent event before a pin is saved', async () => {
    await putVersions();
    const tenant = newTenant();
    const receiver = await newReceiver();
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant, events: [TYPE] });
    const event = await publish(posthorn, {
      tenant,
      type: TYPE,
      schema_version: 'v3',
      data: { id: 7, amount: 9 },
    });
    await untilDeliveries(posthorn, event.id, 'delivered');
    const page = await browser.open(posthorn.key, `/endpoints/${id}?tab=configuration`);
    await page.locator('summary', { hasText: 'Delivery' }).click();
    await page.getByLabel('API version').fill('v1');
    await page.getByRole('button', { name: 'Compare payloads of a recent event' }).click();
    await page.getByText('converted from v3 to v1').waitFor();
    await page.getByText(`event ${event.id}. Nothing is sent or changed.`).waitFor();
    const payloads = await page.locator('pre').allTextContents();
    expect(payloads.map((text) => text.replace(/\s/g, ''))).toEqual(['{"id":7,"amount":9}', '{"id":"7"}']);
    expect(await findViolations(page)).toEqual([]);
    expect((await posthorn.api('GET', `/v1/endpoints/${id}`)).body.api_version).toBeNull();
    await expectStatus(posthorn.api('DELETE', `/v1/endpoints/${id}`), 204);
  });
});
