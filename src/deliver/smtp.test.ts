import { expect, it, onTestFinished } from 'vitest';
import { startMailServer } from '../../test/support/mail-server.ts';
import { needsTls, SmtpTransport } from './smtp.ts';

const MAIL = {
  from: 'Posthorn <posthorn@sender.test>',
  to: 'ann@mail.test',
  subject: 'Grüße',
  text: 'Line one\nLine two: ü\n',
  messageId: '<1@sender.test>',
  headers: { 'auto-submitted': 'auto-generated' },
};

it('OBS-4: a message arrives with its headers and text', async () => {
  const server = await startMailServer();
  onTestFinished(() => server.close());
  const transport = new SmtpTransport(server.url);
  onTestFinished(() => transport.close());
  await transport.send(MAIL);
  const [received] = await server.waitFor(1);
  expect(received).toMatchObject({ from: 'posthorn@sender.test', to: ['ann@mail.test'], text: MAIL.text });
  expect(received!.headers['message-id']).toBe('<1@sender.test>');
});

it('a password is not sent to a server without TLS', async () => {
  expect(needsTls('smtp://user:pw@mail.example.com:587')).toBe(true);
  expect(needsTls('smtp://mail.example.com')).toBe(false);
  expect(needsTls('smtp://user:pw@localhost')).toBe(false);
  const server = await startMailServer();
  onTestFinished(() => server.close());
  // Another name of this machine.
  const transport = new SmtpTransport(server.url.replace('127.0.0.1', 'user:pw@127.1'));
  onTestFinished(() => transport.close());
  await expect(transport.send(MAIL)).rejects.toThrow(/STARTTLS/i);
  expect(server.messages).toEqual([]);
});
