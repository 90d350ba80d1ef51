/** SIG-3: a rotation works with the receiver's own library, which reads one header and knows one secret. */
import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { createVerifier } from '../../packages/verify/src/index.ts';
import { eventually } from '../support/eventually.ts';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  usePosthorn,
} from '../support/posthorn.ts';
import type { Receiver } from '../support/receiver.ts';

const posthorn = usePosthorn({ inProcess: true });

async function endpointWith(signature: unknown) {
  const receiver = await newReceiver();
  const tenant = newTenant();
  const { id, secret } = await createEndpoint(posthorn, { url: receiver.url, tenant, signature });
  const path = `/v1/endpoints/${id}`;
  return {
    secret,
    path,
    rotate: async (body: object) =>
      (await expectStatus(posthorn.api('POST', `${path}/rotate-secret`, body), 200)).body,
    revokePrevious: () => expectStatus(posthorn.api('DELETE', `${path}/secrets/previous`), 204),
    secrets: async () => (await expectStatus(posthorn.api('GET', path), 200)).body.signing_secrets,
    next: () => nextRequest(receiver, tenant),
  };
}

async function nextRequest(receiver: Receiver, tenant: string) {
  const event = await publish(posthorn, { type: 'a.b', tenant, data: { at: Date.now() } });
  const isIt = ({ headers }: { headers: Record<string, string> }) => headers['webhook-id'] === event.id;
  await receiver.waitFor(isIt);
  return receiver.requests.find(isIt)!;
}

type Request = Awaited<ReturnType<typeof nextRequest>>;

/** What GitHub's documentation tells receivers to do. */
const githubAccepts = ({ body, headers }: Request, secret: string): boolean =>
  headers['x-hub-signature-256'] === `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
const hmacOf = (secret: string, { body }: Request): string =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;

describe('github and hex', () => {
  test('primary "old" with switch_at: the old secret signs the header until then, afterwards the new one', async () => {
    const { secret: old, rotate, secrets, next } = await endpointWith('github');
    const switchAt = new Date(Date.now() + 1200).toISOString();
    const rotated = await rotate({ primary: 'old', switch_at: switchAt });
    expect(rotated).toMatchObject({ primary: 'old', switch_at: switchAt });
    const before = await next();
    expect(githubAccepts(before, old)).toBe(true);
    expect(before.headers['x-hub-signature-256-next']).toBe(hmacOf(rotated.secret, before));
    expect(await secrets()).toMatchObject([
      { header: 'x-hub-signature-256-next', switch_at: switchAt, expires_at: null },
      { header: 'x-hub-signature-256', expires_at: rotated.previous_expires_at },
    ]);
    const after = await eventually('the new secret signs the header', async () => {
      const request = await next();
      return githubAccepts(request, rotated.secret) && request;
    });
    expect(Date.now()).toBeGreaterThan(Date.parse(switchAt) - 100);
    expect(after.headers['x-hub-signature-256-previous']).toBe(hmacOf(old, after));
    expect(after.headers['x-hub-signature-256-next']).toBeUndefined();
    expect(await secrets()).toMatchObject([
      { header: 'x-hub-signature-256', switch_at: null },
      { header: 'x-hub-signature-256-previous' },
    ]);
  });

  test('primary "new": the new secret signs the header at once, the old one another header', async () => {
    const {
      secret: old,
      rotate,
      revokePrevious,
      next,
    } = await endpointWith({ profile: 'hex', header: 'X-Sig' });
    const { secret } = await rotate({ primary: 'new', overlap_seconds: 3600 });
    const during = await next();
    expect(during.headers['x-sig']).toBe(hmacOf(secret, during));
    expect(during.headers['x-sig-previous']).toBe(hmacOf(old, during));
    await revokePrevious();
    const after = await next();
    expect(after.headers['x-sig']).toBe(hmacOf(secret, after));
    expect(after.headers['x-sig-previous']).toBeUndefined();
  });

  test('overlap_seconds null: both sign until the old secret is revoked, also after another rotation', async () => {
    const { secret: old, rotate, revokePrevious, secrets, next } = await endpointWith('github');
    const rotated = await rotate({ overlap_seconds: null });
    expect(rotated.previous_expires_at).toBeNull();
    const during = await next();
    expect(githubAccepts(during, old)).toBe(true);
    expect(during.headers['x-hub-signature-256-next']).toBe(hmacOf(rotated.secret, during));
    expect((await secrets()).map(({ expires_at }: { expires_at: unknown }) => expires_at)).toEqual([
      null,
      null,
    ]);
    const again = await rotate({ overlap_seconds: 0 });
    expect(githubAccepts(await next(), old)).toBe(true);
    await revokePrevious();
    expect(githubAccepts(await next(), again.secret)).toBe(true);
    expect(await secrets()).toHaveLength(1);
  });

  test.each([
    [{ primary: 'new', switch_at: '2999-01-01T00:00:00Z' }, 'switch_at'],
    [{ switch_at: '2020-01-01T00:00:00Z' }, 'switch_at'],
    [{ switch_at: new Date(Date.now() + 7_200_000).toISOString(), overlap_seconds: 3600 }, 'switch_at'],
    [{ switch_at: 'soon' }, 'switch_at'],
    [{ primary: 'both' }, 'primary'],
  ])('%j is refused', async (body, path) => {
    const endpoint = await endpointWith('github');
    const answer = await expectStatus(posthorn.api('POST', `${endpoint.path}/rotate-secret`, body), 422);
    expect(answer.body.errors).toMatchObject([{ path }]);
    expect(await endpoint.secrets()).toHaveLength(1);
  });
});

describe('a change between HMAC and Ed25519 keeps the old signature for the overlap', () => {
  const change = (path: string, signature: unknown) =>
    expectStatus(posthorn.api('PATCH', path, { signature }), 200);

  test('standard and standard-ed25519 sign the same header', async () => {
    const { secret, path, revokePrevious, next } = await endpointWith('standard');
    const { body } = await change(path, 'standard-ed25519');
    const during = await next();
    new Webhook(secret).verify(during.body, during.headers);
    expect(during.headers['webhook-signature']).toMatch(/^v1a,\S+ v1,\S+$/);
    await createVerifier({ secret: body.public_key }).verify(during.body, during.headers);
    await revokePrevious();
    expect((await next()).headers['webhook-signature']).toMatch(/^v1a,\S+$/);

    // And back: the new HMAC secret signs beside the key pair.
    await change(path, 'standard');
    const { body: current } = await expectStatus(posthorn.api('GET', `${path}/secret`), 200);
    const back = await next();
    new Webhook(current.secret).verify(back.body, back.headers);
    await createVerifier({ secret: body.public_key }).verify(back.body, back.headers);
  });

  test('hex keeps its own header', async () => {
    const { secret, path, secrets, next } = await endpointWith('hex');
    await change(path, 'standard-ed25519');
    const during = await next();
    expect(during.headers['x-webhook-signature']).toBe(hmacOf(secret, during));
    expect(during.headers['webhook-signature']).toMatch(/^v1a,\S+$/);
    expect(await secrets()).toMatchObject([
      { header: 'webhook-signature', expires_at: null },
      { header: 'x-webhook-signature', expires_at: expect.any(String) },
    ]);
  });

  test('if both use the same header, the old signature moves to another one', async () => {
    const { secret, path, secrets, next } = await endpointWith({ profile: 'hex', header: 'x-sig' });
    await change(path, { profile: 'standard-ed25519', header: 'x-sig' });
    const during = await next();
    expect(during.headers['x-sig-previous']).toBe(hmacOf(secret, during));
    expect(during.headers['x-sig']).toMatch(/^v1a,\S+$/);
    expect(await secrets()).toMatchObject([{ header: 'x-sig' }, { header: 'x-sig-previous' }]);
  });
});
