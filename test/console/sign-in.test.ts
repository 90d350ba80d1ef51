/** Signing in with OpenID Connect instead of a key. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { freePort } from '../support/free-port.ts';
import { CLIENT, startProvider, type TestProvider } from '../support/identity-provider.ts';
import { startTestPosthorn, type TestPosthorn } from '../support/posthorn.ts';
import { findViolations, needsBrowser, useBrowser } from './support/browser.ts';

let database: TestDatabase;
let provider: TestProvider;
let posthorn: TestPosthorn;

beforeAll(async () => {
  database = await createTestDatabase();
  const port = await freePort();
  provider = await startProvider(`http://127.0.0.1:${port}/auth/callback`);
  posthorn = await startTestPosthorn({
    database,
    inProcess: true,
    env: {
      PORT: String(port),
      POSTHORN_OIDC_ISSUER: provider.issuer,
      POSTHORN_OIDC_CLIENT_ID: CLIENT.id,
      POSTHORN_OIDC_CLIENT_SECRET: CLIENT.secret,
      POSTHORN_OIDC_SCOPE: 'openid email groups',
      POSTHORN_OIDC_ADMIN_ROLES: 'ops',
    },
  });
});
afterAll(async () => {
  await posthorn?.stop();
  await provider?.close();
  await database?.drop();
});

const browser = useBrowser(
  () => posthorn.url,
  () => provider.issuer,
);
const SIGN_IN = { name: 'Sign in with your organization' };

describe('signing in with OpenID Connect', needsBrowser(), () => {
  test('leads back to the page, survives a reload, changes things, and ends with the sign-out', async () => {
    provider.signInAs('ann', { email: 'ann@example.com', groups: ['ops'] });
    const page = await browser.open(null, '/keys');
    expect(await findViolations(page)).toEqual([]);
    await page.getByRole('link', SIGN_IN).click();
    await page.getByText('Signed in as ann@example.com').waitFor();
    expect(page.url()).toBe(`${posthorn.url}/console/keys`);
    await page.reload();
    await page.getByText('Signed in as ann@example.com').waitFor();
    // No script can read the session.
    expect(await page.evaluate('document.cookie + JSON.stringify(sessionStorage)')).toBe('{}');

    await page.getByRole('button', { name: 'Create key' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Tenant').fill('acme');
    await dialog.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('button', { name: /^Copy the key/ }).waitFor();
    await page.getByRole('button', { name: 'Done' }).click();

    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('link', SIGN_IN).waitFor();
    await page.reload();
    await page.getByLabel('API key').waitFor();
  });

  test('without a role, the page says so, and a key still works', async () => {
    provider.signInAs('dan', { email: 'dan@example.com', groups: [] });
    const page = await browser.open(null);
    await page.getByRole('link', SIGN_IN).click();
    await page.getByText('Your account has no role in Posthorn').waitFor();
    await page.getByLabel('API key').fill(posthorn.key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Admin key, all tenants').waitFor();
  });
});
