import { expect, it } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import { resolveEndpoint } from '../domain/endpoint-config.ts';
import { newEventId, newId } from '../domain/ids.ts';
import { noticeTypes } from '../domain/notices.ts';
import type { AttemptOutcome } from '../domain/outcome.ts';
import type { AttemptRequest } from '../ports/stages.ts';
import { type Mail, Mailer } from './mailer.ts';

const TIMEOUT_MS = 50;

/** A mail server that answers when the test says so. */
function newMailer() {
  const sent: Mail[] = [];
  const answers: (() => void)[] = [];
  const released: string[] = [];
  const mailer = new Mailer({
    transport: {
      send: (mail) => {
        sent.push(mail);
        return new Promise((resolve) => answers.push(resolve));
      },
      close: () => {},
    },
    from: 'posthorn@sender.test',
    confirmations: {
      claim: async () => true,
      release: async ({ tenant }) => void released.push(tenant),
      linkTo: () => 'https://posthorn.test/confirm',
    },
    clock: systemClock,
    publicUrl: 'https://posthorn.test',
  });
  return { mailer, sent, answers, released };
}

function requestOf(tenant: string, type: string = noticeTypes.digest): AttemptRequest {
  const endpoint = resolveEndpoint(
    {
      id: newId(Date.now()),
      tenant,
      url: 'mailto:ann@mail.test',
      config: { timeout_ms: TIMEOUT_MS, notifier: { kind: 'email', events: [] } },
      enabled: true,
      disabledReason: null,
      paused: false,
      deleted: false,
    },
    [],
  );
  const id = newEventId(Date.now());
  const event = { id, tenant, type, data: Buffer.from('{"test":true}') };
  return { endpoint, event, deliveryId: id, number: 1, maySend: () => true } as unknown as AttemptRequest;
}

const send = (mailer: Mailer, request: AttemptRequest): Promise<AttemptOutcome> =>
  new Promise((resolve) => mailer.send(request, resolve));

it('OBS-4: a message that timed out while it waited for a connection is not sent later', async () => {
  const { mailer, sent, answers, released } = newMailer();
  const first = send(mailer, requestOf('a'));
  const second = send(mailer, requestOf('a'));
  const confirmation = send(mailer, requestOf('a', noticeTypes.confirmation));
  for (const attempt of [first, second, confirmation])
    expect(await attempt).toMatchObject({ error: { class: 'timeout' }, statusCode: null });
  expect((await second).requestHeaders).toEqual({});
  // It was certainly not sent, so it does not count.
  expect(released).toEqual(['a']);
  for (const answer of answers) answer();
  const third = send(mailer, requestOf('a'));
  await new Promise((resolve) => setImmediate(resolve));
  expect(sent).toHaveLength(2);
  for (const answer of answers) answer();
  expect(await third).toMatchObject({ statusCode: 250 });
});

it('OBS-4: if too many messages of a tenant wait, further ones fail and are retried', async () => {
  const { mailer, sent } = newMailer();
  const outcomes = await Promise.all(Array.from({ length: 60 }, () => send(mailer, requestOf('a'))));
  const full = outcomes.filter(({ error }) => error?.class === 'mail_failed');
  expect(full).toHaveLength(9);
  expect(full[0]!.error!.message).toBe('Too many messages wait for the mail server.');
  expect(sent).toHaveLength(1);
});
