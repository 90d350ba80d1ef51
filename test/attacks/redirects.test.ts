/** A receiver redirects to another host: that one gets no secrets, and nothing at all where consent is required. */
import { Webhook } from 'standardwebhooks';
import { expect, it } from 'vitest';
import { createDeliverer, DEVELOPMENT_EGRESS } from '../../src/deliver/index.ts';
import { anEndpoint, anEvent, attempt, TEST_SECRET } from '../support/attempts.ts';
import { redirect } from '../support/behaviours.ts';
import {
  attemptsOf,
  createEndpoint,
  newReceiver,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';

const posthorn = usePosthorn({ inProcess: true, env: { POSTHORN_REQUIRE_CHALLENGE: 'true' } });

it('a redirect to another origin carries no header that the endpoint or the event has set', async () => {
  const victim = await newReceiver({ host: '127.0.0.2' });
  const receiver = await newReceiver();
  receiver.answer(redirect(`${victim.url}/collect`));
  const deliverer = createDeliverer({
    egress: DEVELOPMENT_EGRESS,
    userAgent: 'Posthorn/test',
    publicUrl: 'https://posthorn.test',
  });
  const secrets = {
    'X-AuthToken': 'hidden-1',
    'x-sharedsecret': 'hidden-2',
    'x-functions-key': 'hidden-3',
    'Ocp-Apim-Subscription-Key': 'hidden-4',
    'x-env': 'hidden-5',
  };
  const endpoint = anEndpoint(receiver.url, {
    followRedirects: 1,
    headers: secrets,
    auth: { type: 'bearer', token: 'hidden-6' },
  });
  const event = anEvent({ headers: { 'X-Internal': 'hidden-7' } });
  expect(await attempt(deliverer, endpoint, { event })).toMatchObject({ statusCode: 200, error: null });
  expect(receiver.requests[0]!.rawHeaders.join().match(/hidden-\d/g)).toHaveLength(7);
  const [arrived] = victim.requests;
  expect(arrived!.rawHeaders.join()).not.toContain('hidden');
  new Webhook(TEST_SECRET).verify(arrived!.body, arrived!.headers);
  await deliverer.close();
});

it('with POSTHORN_REQUIRE_CHALLENGE a consenting host cannot redirect to one that has not consented', async () => {
  const victim = await newReceiver({ host: '127.0.0.2' });
  const receiver = await newReceiver();
  receiver.answer(({ path }) => (path === '/here' ? redirect('/there') : redirect(victim.url)));
  await createEndpoint(posthorn, {
    url: `${receiver.url}/here`,
    tenant: 'acme',
    follow_redirects: 3,
    retry: { schedule: [0] },
  });
  const event = await publish(posthorn, { type: 'order.created', data: 1, tenant: 'acme' });
  const [delivery] = await untilDeliveries(posthorn, event.id, 'dead');
  const [made] = await attemptsOf(posthorn, delivery!.id);
  expect(made!.error?.class).toBe('redirect_failed');
  expect(receiver.requests.map(({ path }) => path)).toEqual(['/here', '/there']);
  expect(victim.requests).toHaveLength(0);
});
