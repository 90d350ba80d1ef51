/** Every page, in both themes and on a phone: readable by everybody, and within the screen. */
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import {
  createEndpoint,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import { findBarriers, goTo, needsBrowser, type Rules, signIn, useBrowser } from './support/browser.ts';

const posthorn = usePosthorn({ env: { POSTHORN_INBOX: 'true', POSTHORN_STATS_FLUSH_MS: '100' } });
const browser = useBrowser(() => posthorn.url);

/** Something on every page: a dead letter, a delivery, a key, an inbox with a request. */
async function furnish(): Promise<Record<'endpoint' | 'event' | 'dead' | 'inbox', string>> {
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
  await posthorn.api('PUT', '/v1/event-types/order.created', {
    description: 'An order was placed.',
    example: { order: 1 },
  });
  const { body: inbox } = await posthorn.api('POST', '/v1/inboxes', { tenant });
  await fetch(inbox.url, { method: 'POST', body: '{"hello":"there"}' });
  return { endpoint: endpoint.id, event: event.id, dead: dead.id, inbox: inbox.token };
}

const COUNT_SHIFTS = `window.shifted = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.shifted += entry.value;
}).observe({ type: 'layout-shift', buffered: true });`;

const DESK = { width: 1280, height: 860 };
const PHONE = { width: 390, height: 844 };

/** What is wrong with the page as it is now, in words. */
async function faultsOf(page: Page, what: string, rules?: Rules): Promise<string[]> {
  const barriers = await findBarriers(page, rules);
  const overflow = Number(
    await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
  );
  return [...barriers, ...(overflow > 0 ? [`${overflow} px wider than the screen`] : [])].map(
    (fault) => `${what}: ${fault}`,
  );
}

/** Light and dark, and then on a phone: colours depend on the theme only, everything else on the size only. */
async function faultsInEveryLook(page: Page, what: string): Promise<string[]> {
  const faults = await faultsOf(page, `${what}, light`);
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' });
  faults.push(...(await faultsOf(page, `${what}, dark`, 'colours')));
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  await page.setViewportSize(PHONE);
  faults.push(...(await faultsOf(page, `${what}, 390 px`, 'structure')));
  await page.setViewportSize(DESK);
  return faults;
}

describe('pages of the console', needsBrowser(), () => {
  test('CON-7: axe finds nothing on any page, in both themes and at 390 px', async () => {
    const made = await furnish();
    const pages: readonly (readonly [string, string])[] = [
      ['/', 'Overview'],
      ['/endpoints', 'Orders'],
      [`/endpoints/${made.endpoint}`, 'order.refused'],
      [`/endpoints/${made.endpoint}?tab=deliveries`, 'order.refused'],
      [`/endpoints/${made.endpoint}?tab=filter`, 'Try it on this event'],
      [`/endpoints/${made.endpoint}?tab=configuration`, 'Destination'],
      ['/endpoints/new', 'Destination'],
      ['/events', 'order.refused'],
      [`/events/${made.event}`, 'Payload'],
      [`/events/${made.dead}`, 'The receiver rejected it'],
      ['/dead-letters', 'the receiver rejected it'],
      ['/dead-letters?view=list', 'order.refused'],
      ['/live', 'Live tail'],
      ['/event-types', 'order.created'],
      ['/inbox', 'Received'],
      [`/inbox/${made.inbox}`, 'Not verified'],
      ['/start', 'Create inbox endpoint'],
      ['/keys', 'Dashboard'],
      ['/audit', 'key.create'],
      ['/nowhere', 'There is no such page'],
    ];
    const page = await browser.open(null, '', { reducedMotion: 'reduce', colorScheme: 'light' });
    const faults = await faultsInEveryLook(page, 'sign-in');
    await signIn(page, posthorn.key);
    for (const [path, there] of pages) {
      await goTo(page, path);
      await page.getByText(there).first().waitFor({ state: 'attached' });
      faults.push(...(await faultsInEveryLook(page, path)));
    }
    expect(faults).toEqual([]);
  });

  test('CON-7: the palette, dialogs and the menu of a phone work by keyboard, and are accessible', async () => {
    const page = await browser.open(posthorn.key, '/events', { reducedMotion: 'reduce' });
    await page.keyboard.press('Control+k');
    await page.keyboard.insertText('dead');
    await page.getByRole('option', { name: /Dead letters/ }).waitFor();
    expect(await faultsOf(page, 'palette')).toEqual([]);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Dead letters' }).waitFor();
    await page.goto(`${posthorn.url}/console/events?publish=1`);
    await page.getByRole('dialog').waitFor();
    expect(await faultsOf(page, 'publish')).toEqual([]);
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
    expect(await faultsOf(phone, 'live tail, dark, 390 px')).toEqual([]);
  });

  test('CON-7: nothing jumps while a page loads', async () => {
    const { endpoint, event } = await furnish();
    const page = await browser.open(posthorn.key);
    for (const path of ['/', '/endpoints', `/endpoints/${endpoint}`, '/events', `/events/${event}`]) {
      await page.addInitScript(COUNT_SHIFTS);
      await page.goto(`${posthorn.url}/console${path}`);
      await page.getByText('order.created').or(page.getByText('Orders')).first().waitFor();
      // A page that polls is never done: what comes a moment later belongs to its loading.
      await page.waitForLoadState('networkidle', { timeout: 800 }).catch(() => {});
      // Good by the measure of web vitals is up to 0.1.
      expect(Number(await page.evaluate('window.shifted')), path).toBeLessThan(0.1);
    }
  });
});
