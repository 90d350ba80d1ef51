/** The guide at /docs/guide in a browser. */
import { beforeAll, describe, expect, test } from 'vitest';
import { buildGuide } from '../../scripts/build-guide.ts';
import { isGuideOutdated } from '../../scripts/guide/is-outdated.ts';
import { usePosthorn } from '../support/posthorn.ts';
import { findViolations, needsBrowser, useBrowser } from './support/browser.ts';

const posthorn = usePosthorn();
const browser = useBrowser(() => posthorn.url);
beforeAll(async () => {
  if (await isGuideOutdated()) await buildGuide();
});

describe('guide', needsBrowser(), () => {
  test('its search finds a section, with the keyboard alone, and a page is accessible', async () => {
    const page = await browser.open(null, '', { reducedMotion: 'reduce' });
    await page.goto(`${posthorn.url}/docs/guide`);
    await page.getByRole('heading', { name: 'Posthorn', level: 1 }).waitFor();
    expect(await findViolations(page)).toEqual([]);
    await page.keyboard.press('/');
    await page.keyboard.insertText('backup restore');
    await page.keyboard.press('Tab');
    await page.getByRole('list', { name: 'Search results' }).getByRole('link').first().waitFor();
    await page.getByRole('list', { name: 'Search results' }).getByRole('link').first().press('Enter');
    await page.waitForURL(/backup\.html#/);
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    expect(await findViolations(page)).toEqual([]);
  });
});
