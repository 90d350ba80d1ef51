import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { anEndpoint, attempt, TEST_SECRET } from '../../test/support/attempts.ts';
import { redirect } from '../../test/support/behaviours.ts';
import { certificates } from '../../test/support/certificates.ts';
import { type Receiver, startReceiver } from '../../test/support/receiver.ts';
import { createDeliverer, DEVELOPMENT_EGRESS, type Deliverer, type DelivererOptions } from './index.ts';

let receiver: Receiver;
let deliverer: Deliverer;
const others: { close(): Promise<void> }[] = [];

const options: DelivererOptions = {
  egress: DEVELOPMENT_EGRESS,
  userAgent: 'Posthorn/test',
  publicUrl: 'https://posthorn.test',
  ca: certificates.authority,
};
const another = async (...args: Parameters<typeof startReceiver>): Promise<Receiver> => {
  const made = await startReceiver(...args);
  others.push(made);
  return made;
};

beforeEach(async () => {
  receiver = await startReceiver();
  deliverer = createDeliverer(options);
});
afterEach(async () => {
  await deliverer.close();
  for (const one of others.splice(0).reverse()) await one.close();
  await receiver.waitForNoSockets();
  await receiver.close();
});

describe('DLV-6 redirects', () => {
  it('are followed by the same signed request, and the last URL is recorded', async () => {
    receiver.answer((request) =>
      request.path === '/a' ? redirect('/b', 308) : { status: 200, body: 'here' },
    );
    const outcome = await attempt(deliverer, anEndpoint(`${receiver.url}/a`, { followRedirects: 1 }));
    expect(outcome).toMatchObject({ statusCode: 200, error: null, url: `${receiver.url}/b` });
    const [first, second] = receiver.requests;
    expect(second?.body).toEqual(first?.body);
    expect(second?.headers).toEqual(first?.headers);
    new Webhook(TEST_SECRET).verify(second!.body, second!.headers);
  });

  it('carry credentials and custom headers to the same origin only', async () => {
    const elsewhere = await another();
    const headers = { Authorization: 'Bearer x', Cookie: 'a=b', 'X-Api-Key': 'k', 'X-Team': 'blue' };
    receiver.answer((request) => redirect(request.path === '/a' ? '/b' : `${elsewhere.url}/c`));
    await attempt(deliverer, anEndpoint(`${receiver.url}/a`, { followRedirects: 2, headers }));
    expect(receiver.requests[1]?.headers).toMatchObject({ authorization: 'Bearer x', cookie: 'a=b' });
    const last = elsewhere.requests[0]!.headers;
    for (const name of ['authorization', 'cookie', 'x-api-key', 'x-team'])
      expect(last).not.toHaveProperty(name);
  });

  it('are followed as often as allowed', async () => {
    receiver.answer((request) => redirect(`/${request.index}`));
    for (const followRedirects of [1, 2, 3]) {
      const before = receiver.requests.length;
      const outcome = await attempt(deliverer, anEndpoint(receiver.url, { followRedirects }));
      expect(outcome.error?.class).toBe('redirect_failed');
      expect(receiver.requests.length - before).toBe(1 + followRedirects);
    }
  });

  it('are all within one deadline', async () => {
    receiver.answer((request) => ({ ...redirect(`/${request.index}`), delayMs: 300 }));
    const outcome = await attempt(
      deliverer,
      anEndpoint(receiver.url, { followRedirects: 3, timeoutMs: 800 }),
    );
    expect(outcome.error?.class).toBe('timeout');
  });

  it('never lead from https to http', async () => {
    const secure = await another({ tls: certificates.valid });
    secure.answer(redirect(`${receiver.url}/`));
    const outcome = await attempt(deliverer, anEndpoint(secure.url, { followRedirects: 3 }));
    expect(outcome.error?.class).toBe('redirect_failed');
    expect(receiver.requests).toHaveLength(0);
  });
});
