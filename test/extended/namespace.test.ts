/**
 * EGR-1: `posthorn serve` in a network namespace where every address is this machine. Listeners see whatever it connects
 * to, so the test shows what reaches the network, not what the guard believes.
 */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import type { Report } from '../support/namespace/driver.ts';
import { missingProgram, NOT_LINUX, needs } from '../support/needs.ts';
import { MAIN } from '../support/posthorn.ts';

const DRIVER = fileURLToPath(new URL('../support/namespace/driver.ts', import.meta.url));
/** As another user than root, a user namespace gives the rights that the network namespace needs. */
const UNSHARE = process.getuid?.() === 0 ? ['--net'] : ['--net', '--map-root-user'];

function missing(): string | null {
  const lacking = NOT_LINUX ?? missingProgram('unshare', 'ip');
  if (lacking !== null) return lacking;
  const { status } = spawnSync('unshare', [...UNSHARE, 'ip', 'link', 'set', 'lo', 'up']);
  return status === 0 ? null : 'this user may not create network namespaces';
}

test('connects to public addresses and to nothing else', {
  ...needs(missing()),
  timeout: 180_000,
}, async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const { stdout, stderr } = spawnSync('unshare', [...UNSHARE, process.execPath, DRIVER, MAIN], {
    encoding: 'utf8',
    timeout: 150_000,
    env: {
      PATH: process.env.PATH ?? '',
      DATABASE_URL: database.url,
      POSTHORN_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
    },
  });
  expect(stdout, stderr).toContain('{');
  const { reached, results, registrations } = JSON.parse(stdout) as Report;
  expect(reached).toEqual(['2606:4700::1111 80', '93.184.216.34 80']);
  const delivered = [
    'public.example',
    'public6.example',
    'redirect to a public name',
    'token of a public name',
  ];
  for (const [name, result] of Object.entries(results))
    if (delivered.includes(name)) expect(result, name).toBe('delivered');
    // Its first connection was to a public address, and may still be open.
    else if (name !== 'rebinding.example')
      expect(result, name).toMatch(/^dead (dns_failed|egress_forbidden|oauth_failed)$/);
  for (const [url, code] of Object.entries(registrations))
    expect(code, url).toMatch(/^(url_forbidden|challenge_failed)$/);
});
