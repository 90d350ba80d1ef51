/** Every page in both themes and on a phone: accessible, and not wider than the screen. */
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import {
  createEndpoint,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import { findViolations, goTo, needsBrowser, type Rules, signIn, useBrowser } from './support/browser.ts';

const posthorn = usePosthorn({ env: { POSTHORN_INBOX: 'true', POSTHORN_STATS_FLUSH_MS: '100' } });
const browser = useBrowser(() => posthorn.url);

/** Creates content for every page: a dead letter, a delivery, a key, an inbox with a request. */
async function createContent(): Promise<Record<'endpoint' | 'event' | 'dead' | 'inbox', string>> {
  const tenant = newTenant();
  const receiver = await newReceiver();
  receiver.answer(({ headers }) => ({
    status: headers['posthorn-event-type'] === 'order.created' ? 200 : 400,
  }));
  const endpoint = await createEndpoint(posthorn, {
    url: receiver.url,
    tenant,
    description: 'Orders',
  });
  const event = await publish(posthorn, { type: 'order.created', tenant, data: { order: 1 } });
  const dead = await publish(posthorn, { type: 'order.refused', tenant, data: { order: 2 } });
  await untilDeliveries(posthorn, event.id, 'delivered');
  await untilDeliveries(posthorn, dead.id, 'dead');
  await posthorn.api('POST', '/v1/keys', { scope: 'read', description: 'Dashboard' });
  await posthorn.api('POST', '/v1/notifiers', { kind: 'slack', url: receiver.url, description: '#webhooks' });
  const schema = { type: 'object', properties: { total: { type: 'integer' } } };
  await posthorn.api('PUT', '/v1/event-types/order.changed/versions/v1', { schema });
  await posthorn.api('PUT', '/v1/event-types/order.changed/versions/v2', { schema: { type: 'object' } });
  await posthorn.api('PUT', '/v1/event-types/order.created', {
    description: 'An order was placed.',
    example: { order: 1 },
  });
  const { body: inbox } = await posthorn.api('POST', '/v1/inboxes', { tenant });
  await fetch(inbox.url, { method: 'POST', body: '{"hello":"there"}' });
  return { endpoint: endpoint.id, event: event.id, dead: dead.id, inbox: inbox.token };
}

const COUNT_LAYOUT_SHIFTS = `window.layoutShift = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.layoutShift += entry.value;
}).observe({ type: 'layout-shift', buffered: true });`;

/** How many pixels the page, or the widest of its tables, is wider than its place. */
const OVERFLOW = `Math.max(...[document.documentElement, ...document.querySelectorAll('.table-wrap')]
  .map((element) => element.scrollWidth - element.clientWidth))`;
const DESK = { width: 1280, height: 860 };
const PHONE = { width: 390, height: 844 };

/** Lists the accessibility violations of the page, and whether something is too wide. `name` starts each line. */
async function findFaults(page: Page, name: string, rules?: Rules): Promise<string[]> {
  // Tables drop columns one frame after the window became narrow, so the page is looked at when it fits.
  let overflow = Number.NaN;
  const fits = async (): Promise<boolean> => {
    overflow = Number(await page.evaluate(OVERFLOW));
    return overflow <= 0;
  };
  await eventually('the page fits the screen', fits, { timeoutMs: 2_000 }).catch(() => {});
  const violations = await findViolations(page, rules);
  return [...violations, ...(overflow > 0 ? [`${overflow} px too wide`] : [])].map(
    (fault) => `${name}: ${fault}`,
  );
}

/** Checks light, dark and phone. Only colours depend on the theme, so dark skips all other rules, and the phone skips colours. */
async function findFaultsInEveryLook(page: Page, name: string): Promise<string[]> {
  const faults = await findFaults(page, `${name}, light`);
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' });
  faults.push(...(await findFaults(page, `${name}, dark`, 'colours')));
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  await page.setViewportSize(PHONE);
  faults.push(...(await findFaults(page, `${name}, 390 px`, 'structure')));
  await page.setViewportSize(DESK);
  return faults;
}

describe('console pages', needsBrowser(), () => {
  test('CON-7: axe finds no violation on any page, in both themes and at 390 px', async () => {
    const content = await createContent();
    const pages: readonly (readonly [string, string])[] = [
      ['/', 'Overview'],
      ['/endpoints', 'Orders'],
      [`/endpoints/${content.endpoint}`, 'order.refused'],
      [`/endpoints/${content.endpoint}?tab=deliveries`, 'order.refused'],
      [`/endpoints/${content.endpoint}?tab=filter`, 'Sample event'],
      [`/endpoints/${content.endpoint}?tab=configuration`, 'Destination'],
      ['/endpoints/new', 'Destination'],
      ['/events', 'order.refused'],
      [`/events/${content.event}`, 'Payload'],
      [`/events/${content.dead}`, 'The receiver rejected the request'],
      ['/dead-letters', 'the receiver rejected the request'],
      ['/dead-letters?view=list', 'order.refused'],
      ['/tasks', 'Tasks'],
      ['/tenants', 'Publish limit'],
      ['/notices', '#webhooks'],
      ['/live', 'Live tail'],
      ['/event-types', 'order.created'],
      ['/event-types/order.changed', 'Changes since v1'],
      ['/inbox', 'Received'],
      [`/inbox/${content.inbox}`, 'Not verified'],
      ['/start', 'Create inbox endpoint'],
      ['/keys', 'Dashboard'],
      ['/audit', 'key.create'],
      ['/storage', 'Per event'],
      ['/nowhere', 'Page not found'],
    ];
    const page = await browser.open(null, '', { reducedMotion: 'reduce', colorScheme: 'light' });
    const faults = await findFaultsInEveryLook(page, 'sign-in');
    await signIn(page, posthorn.key);
    for (const [path, text] of pages) {
      await goTo(page, path);
      await page.getByText(text).first().waitFor({ state: 'attached' });
      faults.push(...(await findFaultsInEveryLook(page, path)));
    }
    expect(faults).toEqual([]);
    // Three looks of 25 pages: a busy machine needs more than the usual minute.
  }, 150_000);

  test('LIF-1: the page Storage counts the dead letters that retention discarded', async () => {
    await posthorn.database.query(
      "insert into posthorn.expired_dead_letters values ((now() at time zone 'UTC')::date, 1234)",
    );
    const page = await browser.open(posthorn.key, '/storage');
    await page.getByText(/Retention discarded 1,234 dead letters in the last 30\s+days/).waitFor();
  });

  test('CON-7: palette, dialogs, skip link and phone menu are accessible and work with the keyboard', async () => {
    const page = await browser.open(posthorn.key, '/events', { reducedMotion: 'reduce' });
    await page.keyboard.press('Tab');
    await page.getByRole('link', { name: 'Skip to content' }).press('Enter');
    expect(await page.evaluate('document.activeElement.tagName')).toBe('MAIN');

    await page.keyboard.press('Control+k');
    await page.keyboard.insertText('dead');
    await page.getByRole('option', { name: /Dead letters/ }).waitFor();
    expect(await findFaults(page, 'palette')).toEqual([]);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Dead letters' }).waitFor();
    await page.goto(`${posthorn.url}/console/events?publish=1`);
    await page.getByRole('dialog').waitFor();
    expect(await findFaults(page, 'publish')).toEqual([]);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });

    const phone = await browser.open(posthorn.key, '/events', {
      viewport: PHONE,
      reducedMotion: 'reduce',
    });
    await phone.getByRole('button', { name: 'Menu' }).click();
    await phone.getByRole('link', { name: 'Live tail' }).click();
    await phone.getByRole('heading', { name: 'Live tail' }).waitFor();
    await phone.getByRole('button', { name: 'Dark theme' }).click();
    expect(await findFaults(phone, 'live tail, dark, 390 px')).toEqual([]);
  });

  test('CON-7: the layout does not shift while a page loads', async () => {
    const { endpoint, event } = await createContent();
    const page = await browser.open(posthorn.key);
    await page.addInitScript(COUNT_LAYOUT_SHIFTS);
    for (const path of ['/', '/endpoints', `/endpoints/${endpoint}`, '/events', `/events/${event}`]) {
      await page.goto(`${posthorn.url}/console${path}`);
      await page.getByText('order.created').or(page.getByText('Orders')).first().waitFor();
      // A page that polls never becomes idle: wait a moment for late content.
      await page.waitForLoadState('networkidle', { timeout: 800 }).catch(() => {});
      // Web Vitals call a shift below 0.1 good.
      expect(Number(await page.evaluate('window.layoutShift')), path).toBeLessThan(0.1);
    }
  });
});
