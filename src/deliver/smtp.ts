import type { Transporter } from 'nodemailer';
import { MAIL_CONNECTIONS, type Mail, type MailTransport } from './mailer.ts';

const CONNECT_TIMEOUT_MS = 10_000;
const SOCKET_TIMEOUT_MS = 30_000;

/** Sends mail through the server of an `smtp://` or `smtps://` URL. The library is loaded with the first message. */
export class SmtpTransport implements MailTransport {
  readonly #url: string;
  #transporter: Promise<Transporter> | null = null;

  constructor(url: string) {
    this.#url = url;
  }

  async send({ from, to, subject, text, messageId, headers }: Mail): Promise<void> {
    this.#transporter ??= open(this.#url);
    const transporter = await this.#transporter;
    await transporter.sendMail({
      from,
      // An object, so that the address is not parsed: a comma would make it several.
      to: { name: '', address: to },
      subject,
      text,
      messageId,
      headers: { ...headers },
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  }

  close(): void {
    void this.#transporter?.then((transporter) => transporter.close()).catch(() => {});
  }
}

/** Names of this machine. Between Posthorn and a mail server on the same machine nobody can listen. */
const LOCAL = new Set(['localhost', '127.0.0.1', '[::1]']);

/** A password must not travel in the clear, even if somebody hides that the server offers STARTTLS. */
export function needsTls(url: string): boolean {
  const { password, hostname } = new URL(url);
  return password !== '' && !LOCAL.has(hostname);
}

async function open(url: string): Promise<Transporter> {
  const { createTransport } = await import('nodemailer');
  return createTransport({
    url,
    pool: true,
    ...(needsTls(url) && { requireTLS: true }),
    // One connection for each message that is sent at once, so no message waits in the library. Idle ones are closed after `SOCKET_TIMEOUT_MS`.
    maxConnections: MAIL_CONNECTIONS,
    connectionTimeout: CONNECT_TIMEOUT_MS,
    greetingTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SOCKET_TIMEOUT_MS,
  } as never);
}
