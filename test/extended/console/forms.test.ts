/** The forms of the console for batches, debounce and versions, and the pages that show what they did. */
import { describe, expect, test } from 'vitest';
import { findViolations, needsBrowser, useBrowser } from '../../console/support/browser.ts';
import {
  createEndpoint,
  deliveriesOf,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../../support/posthorn.ts';

const posthorn = usePosthorn();
const browser = useBrowser(() => posthorn.url);

async function publishOrders(tenant: string, count: number, orders: number): Promise<string[]> {
  const events = Array.from({ length: count }, (_, n) => ({
    tenant,
    type: 'order.changed',
    data: { order_id: `ord_${n % orders}`, n },
  }));
  const { body } = await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }), 202);
  return body.results.map(({ id }: { id: string }) => id);
}

describe('forms of the console', needsBrowser(), () => {
  test('FAN-4: the endpoint form sets batches and debounce, shows their effect, and explains what excludes them', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant, description: 'Orders' });
    await publishOrders(tenant, 60, 6);

    const page = await browser.open(posthorn.key, `/endpoints/${id}?tab=configuration`);
    await page.locator('summary', { hasText: 'Delivery' }).click();
    await page.getByLabel('Requests', { exact: true }).selectOption('batch');
    await page.getByLabel('Events per request').fill('10');
    await page.getByText('this would have sent 6 requests instead of 60').waitFor();
    await page.getByLabel('API version').fill('2026-04-01');
    await page.getByText('Batches are not possible with an API version').waitFor();
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('1 field is invalid: Requests').waitFor();
    await page.getByLabel('API version').fill('');
    await page.getByLabel('Largest body (bytes)').fill('5');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('1 field is invalid: Largest body (bytes)').waitFor();
    await page.getByLabel('Largest body (bytes)').fill('');
    expect(await findViolations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Saved').waitFor();
    const shown = async () => (await posthorn.api('GET', `/v1/endpoints/${id}`)).body;
    expect(await shown()).toMatchObject({ batch: { max_events: 10, max_wait_ms: 1_000 }, debounce: null });

    await page.getByLabel('Requests', { exact: true }).selectOption('debounce');
    await page.getByLabel('Key', { exact: true }).fill('data.order_id');
    await page.getByLabel('Window (ms)').fill('30000');
    await page.getByText('this would have sent 6 requests instead of 60').waitFor();
    await page.getByLabel('Ordering', { exact: true }).selectOption('fifo');
    await page.getByText('Debounce is not possible with strict ordering').waitFor();
    await page.getByLabel('Ordering', { exact: true }).selectOption('none');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Saved').first().waitFor();
    await expect
      .poll(shown)
      .toMatchObject({ batch: null, debounce: { key: 'data.order_id', window_ms: 30_000, mode: 'last' } });
  });

  test('FAN-4: an event shows the batch that carried it and its siblings, and a debounced one the event that was sent', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      description: 'Batches',
      batch: { max_events: 3, max_wait_ms: 60_000 },
    });
    const ids = await publishOrders(tenant, 3, 3);
    for (const id of ids) await untilDeliveries(posthorn, id, 'delivered');
    const page = await browser.open(posthorn.key, `/events/${ids[1]}`);
    await page.getByRole('button', { name: /^#1/ }).click();
    await page.getByText('with 2 other events').waitFor();
    await page.getByRole('link', { name: ids[0]!, exact: true }).waitFor();
    await page.getByRole('link', { name: 'sent in a batch' }).click();
    await page.getByText('3 events in one request').waitFor();
    expect(await findViolations(page)).toEqual([]);
    await page.getByRole('link', { name: ids[2]! }).click();
    await page.getByRole('heading', { name: 'order.changed' }).waitFor();

    const other = newTenant();
    await createEndpoint(posthorn, {
      url: receiver.url,
      tenant: other,
      debounce: { key: 'data.order_id', window_ms: 200 },
    });
    const [first, last] = await publishOrders(other, 2, 1);
    await untilDeliveries(posthorn, last!, 'delivered');
    expect((await deliveriesOf(posthorn, first!))[0]).toMatchObject({ status: 'skipped' });
    await page.goto(`${posthorn.url}/console/events/${first}`);
    await page.getByRole('link', { name: 'Show the delivery that was sent' }).click();
    await page.waitForURL(`**/events/${last}?*`);
    await page.getByText('Delivered', { exact: true }).first().waitFor();
  });

  test('VER-1, VER-3: a version is added and ended in the console, with its difference shown before it is saved', async () => {
    const type = 'invoice.sent';
    const schema = { type: 'object', required: ['id'], properties: { id: { type: 'string' } } };
    await posthorn.api('PUT', `/v1/event-types/${type}/versions/v1`, { schema });
    const page = await browser.open(posthorn.key, `/event-types/${type}`);
    await page.getByRole('button', { name: 'Add version' }).click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.getByLabel('Version', { exact: true }).inputValue()).toBe('v2');
    const field = dialog.getByLabel('JSON Schema of the data');
    await field.fill('{ "type": ');
    await dialog.getByText('The schema is not valid JSON.').waitFor();
    await field.fill(JSON.stringify({ ...schema, properties: { id: { type: 'integer' } } }));
    await dialog.getByText('breaking', { exact: true }).waitFor();
    await field.fill(
      JSON.stringify({ ...schema, properties: { ...schema.properties, note: { type: 'string' } } }),
    );
    await dialog.getByText('was added').waitFor();
    await dialog.getByText('additive', { exact: true }).waitFor();
    expect(await findViolations(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Changes since v1').waitFor();

    await page.getByRole('button', { name: 'Edit version v1' }).click();
    // It was active, so it cannot become a draft.
    expect(await dialog.getByLabel('Status').locator('option').allTextContents()).toEqual([
      expect.stringContaining('Active'),
      expect.stringContaining('Deprecated'),
      expect.stringContaining('Retired'),
    ]);
    await dialog.getByLabel('Status').selectOption('deprecated');
    await dialog.getByLabel(/^Sunset/).fill('2027-01-31T00:00');
    await dialog.getByLabel('JSON Schema of the data').fill('{"type":"string"}');
    await dialog.getByText('This cannot be saved').waitFor();
    await dialog.getByLabel('JSON Schema of the data').fill(JSON.stringify(schema));
    await dialog.getByText('This is the first version').waitFor();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Sunset:').waitFor();

    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    await dialog.getByLabel('Validation').selectOption('strict');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Validation: strict').waitFor();
    const refused = await posthorn.api('POST', '/v1/events', { type, data: { id: 1 } });
    expect(refused.body).toMatchObject({ code: 'payload_invalid' });
    await page.getByText('data.id', { exact: true }).waitFor();
    await publish(posthorn, { type, data: { id: 'inv_1' } });

    await page.getByLabel('Data (JSON)').fill('{"id":"inv_1"}');
    await page.getByLabel('Written in version').selectOption('v1');
    await page.getByRole('button', { name: 'Check' }).click();
    await page.getByText('checked against v1').waitFor();
    expect(await findViolations(page)).toEqual([]);
  });

  test('VER-1: the form of a tenant sets its validation and keeps its other settings', async () => {
    const tenant = newTenant();
    const settings = {
      name: 'Acme',
      metadata: { plan: 'gold' },
      ingest_rate_limit: { per_second: 50, burst: 80 },
    };
    await posthorn.api('PUT', `/v1/tenants/${tenant}`, settings);
    const page = await browser.open(posthorn.key, '/tenants');
    await page.getByRole('button', { name: `Edit ${tenant}` }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Validation').selectOption('warn');
    await dialog.getByLabel('Endpoint limit').fill('many');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText('must be').first().waitFor();
    await dialog.getByLabel('Endpoint limit').fill('7');
    expect(await findViolations(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved').waitFor();
    const { body } = await posthorn.api('GET', `/v1/tenants/${tenant}`);
    expect(body).toMatchObject({ ...settings, validation: 'warn', max_endpoints: 7 });
  });
});
