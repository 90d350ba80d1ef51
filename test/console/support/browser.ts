/**
 * A real browser for the console tests. A test fails if one of its pages logs an error, violates its content security
 * policy, requests another host, or gets a 5xx response.
 */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, inject, onTestFinished } from 'vitest';
import { createLaunchOptions } from '../../../scripts/find-chromium.ts';
import { needs, type SkipOptions } from '../../support/needs.ts';

/** Options of a suite whose tests need a browser. */
export function needsBrowser(): SkipOptions {
  const found = inject('chromium');
  return needs(typeof found === 'string' ? found : null);
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export interface ConsoleBrowser {
  /** Opens a page in a new profile, signed in with the key; null: signed out. */
  open(key: string | null, path?: string, options?: BrowserContextOptions): Promise<Page>;
}

/**
 * One browser for all tests of a file. `getUrl` is called when a page is opened, because the server starts later. Pages may
 * also request what begins with the other URL.
 */
export function useBrowser(getUrl: () => string, getOtherUrl: () => string = getUrl): ConsoleBrowser {
  let browser: Browser | undefined;
  beforeAll(async () => {
    const found = inject('chromium');
    if (typeof found !== 'string') browser = await chromium.launch(createLaunchOptions(found));
  });
  afterAll(async () => browser?.close());

  return {
    async open(key, path = '', options = {}) {
      const context = await browser!.newContext({ viewport: { width: 1280, height: 860 }, ...options });
      context.setDefaultTimeout(20_000);
      const page = await context.newPage();
      const faults = collectFaults(page, [getUrl(), getOtherUrl()]);
      onTestFinished(async () => {
        await context.close();
        expect(faults).toEqual([]);
      });
      await page.goto(`${getUrl()}/console${path}`);
      if (key !== null) await signIn(page, key);
      return page;
    },
  };
}

export async function signIn(page: Page, key: string): Promise<void> {
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: /^Search or paste an id/ }).waitFor();
}

function collectFaults(page: Page, origins: readonly string[]): string[] {
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(`uncaught: ${error.message}`));
  page.on('console', (message) => {
    // The browser logs every 4xx, and some tests expect one.
    const isStatusCode = message.text().startsWith('Failed to load resource');
    if ((message.type() === 'error' || message.type() === 'warning') && !isStatusCode)
      faults.push(message.text());
  });
  page.on('request', (request) => {
    if (![...origins, 'data:'].some((origin) => request.url().startsWith(origin)))
      faults.push(`request to another host: ${request.url()}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 500) faults.push(`${response.status()} ${response.url()}`);
  });
  return faults;
}

interface Violation {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

export type Rules = 'all' | 'colours' | 'structure';
const CONTRAST = ['color-contrast', 'link-in-text-block'];
const RUN: Record<Rules, object> = {
  all: {},
  colours: { runOnly: CONTRAST },
  structure: { rules: Object.fromEntries(CONTRAST.map((rule) => [rule, { enabled: false }])) },
};

/** Returns what axe finds against WCAG and its own best practices. */
export async function findViolations(page: Page, rules: Rules = 'all'): Promise<string[]> {
  // Evaluated through the debugger, because the page's policy forbids a script tag.
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axeSource);
  const options = JSON.stringify({ resultTypes: ['violations'], ...RUN[rules] });
  const violations = (await page.evaluate(
    `axe.run(document, ${options}).then((results) => results.violations)`,
  )) as Violation[];
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${help}\n${html.slice(0, 300)}\n${failureSummary}`),
  );
}

/** Navigates to another page of the console without a reload. */
export async function goTo(page: Page, path: string): Promise<void> {
  await page.evaluate(
    `history.pushState(null, '', ${JSON.stringify(`/console${path}`)}); dispatchEvent(new PopStateEvent('popstate'))`,
  );
}

/** Acts like a user with mouse and keyboard, and counts the actions. */
export class UserActions {
  count = 0;
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  async press(key: string): Promise<void> {
    this.count += 1;
    await this.page.keyboard.press(key);
  }

  /** Inserts the text at once, as from the clipboard. */
  async paste(text: string): Promise<void> {
    this.count += 1;
    await this.page.keyboard.insertText(text);
  }

  async click(role: 'button' | 'link', name: string | RegExp): Promise<void> {
    this.count += 1;
    await this.page.getByRole(role, { name, exact: true }).first().click();
  }
}
