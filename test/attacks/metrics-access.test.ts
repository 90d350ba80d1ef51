/** A stranger reads the metrics through a proxy on the same machine, or by a name that resolves to it. */

import { expect, it, onTestFinished } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { freePort } from '../support/free-port.ts';
import { expectStatus, startTestPosthorn, usePosthorn } from '../support/posthorn.ts';
import { exchange } from '../support/raw-http.ts';

const posthorn = usePosthorn({ inProcess: true });

it.each([
  'forwarded: for=203.0.113.9',
  'via: 1.1 proxy',
  'x-forwarded-for: 203.0.113.9',
  'x-forwarded-proto: https',
  'x-forwarded-host: posthorn.example',
  'x-real-ip: 203.0.113.9',
  'x-client-ip: 203.0.113.9',
  'x-cluster-client-ip: 203.0.113.9',
  'cf-connecting-ip: 203.0.113.9',
  'true-client-ip: 203.0.113.9',
  'fastly-client-ip: 203.0.113.9',
  'x-envoy-external-address: 203.0.113.9',
  'x-amzn-trace-id: Root=1-67891233',
  'x-original-url: /metrics',
  'cdn-loop: cdn.example',
])('a request with "%s" needs a key', async (header) => {
  const { host } = new URL(posthorn.url);
  const head = `GET /metrics HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n`;
  const { answers } = await exchange(posthorn.url, `${head}${header}\r\n\r\n`);
  expect(answers[0]!.status).toBe(401);
});

it('a request for another host name needs a key: a web page may have a name that resolves to this machine', async () => {
  const attack = 'GET /metrics HTTP/1.1\r\nhost: rebinding.example\r\nconnection: close\r\n\r\n';
  const { answers } = await exchange(posthorn.url, attack);
  expect(answers[0]!.status).toBe(401);
});

it('POSTHORN_METRICS_ACCESS=key requires a key from local requests too, and POSTHORN_METRICS_ADDR serves nothing else', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const port = await freePort();
  const server = await startTestPosthorn({
    database,
    inProcess: true,
    env: { POSTHORN_METRICS_ACCESS: 'key', POSTHORN_METRICS_ADDR: `127.0.0.1:${port}` },
  });
  onTestFinished(() => server.stop());
  await expectStatus(server.api('GET', '/metrics'), 404);
  const at = (path: string, key: string | null) =>
    fetch(
      `http://127.0.0.1:${port}${path}`,
      key === null ? {} : { headers: { authorization: `Bearer ${key}` } },
    );
  expect((await at('/metrics', null)).status).toBe(401);
  const answer = await at('/metrics', server.key);
  expect(answer.status).toBe(200);
  expect(await answer.text()).toContain('posthorn_in_flight');
  for (const path of ['/v1/endpoints', '/console', '/healthz', '/openapi.json', '/'])
    expect((await at(path, server.key)).status, path).toBe(404);
});

it('POSTHORN_METRICS_ACCESS=open requires no key', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const server = await startTestPosthorn({
    database,
    inProcess: true,
    env: { POSTHORN_METRICS_ACCESS: 'open' },
  });
  onTestFinished(() => server.stop());
  const forwarded = { key: null, headers: { 'x-forwarded-for': '203.0.113.9' } };
  await expectStatus(server.api('GET', '/metrics', undefined, forwarded), 200);
});
