/** A tenant tries to find out which names an internal network knows, by what its attempts say about them. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createDeliverer, createDnsLookup, type Deliverer, STRICT_EGRESS } from '../../src/deliver/index.ts';
import { anEndpoint, attempt } from '../support/attempts.ts';
import { type DnsRecord, type DnsServer, startDnsServer } from '../support/dns-server.ts';

const NAMES: Readonly<Record<string, DnsRecord>> = {
  'private.test': ['10.0.0.1'],
  'metadata.test': ['169.254.169.254'],
  'loopback.test': ['127.0.0.1', '::1'],
  'ipv6.test': ['fd00::1'],
  'mixed.test': ['8.8.8.8', '10.0.0.1'],
  'alias.test': { alias: 'db.internal', addresses: ['10.0.0.2'] },
  'broken.test': 'servfail',
  'missing.test': 'nxdomain',
};

let dns: DnsServer;
let deliverer: Deliverer;
beforeAll(async () => {
  dns = await startDnsServer(NAMES);
  deliverer = createDeliverer({
    egress: { ...STRICT_EGRESS, requireHttps: false },
    userAgent: 'Posthorn/test',
    publicUrl: 'https://posthorn.test',
    lookup: createDnsLookup({ servers: [dns.address], timeoutMs: 400, tries: 1 }),
    connectTimeoutMs: 1_000,
    // What POSTHORN_EGRESS_ERRORS=uniform sets, the default of `serve`.
    hidesForbiddenNames: true,
  });
});
afterAll(async () => {
  await deliverer.close();
  await dns.close();
});

it.each(Object.keys(NAMES))('%s looks like a name that does not exist', async (name) => {
  const { error, statusCode, timing } = await attempt(deliverer, anEndpoint(`http://${name}/`));
  const measured = Object.entries(timing).flatMap(([stage, ms]) => (ms === null ? [] : [stage]));
  expect({ error, statusCode, measured }).toEqual({
    error: { class: 'dns_failed', message: 'The host name could not be resolved.' },
    statusCode: null,
    measured: ['dnsMs'],
  });
});
