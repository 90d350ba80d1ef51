/** Clients that ask for large answers and never read them: their connections are closed, and counted. */
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { expectStatus, usePosthorn } from '../support/posthorn.ts';
import { readScrape } from '../support/scrape.ts';

const posthorn = usePosthorn({ env: { POSTHORN_ANSWER_TIMEOUT_MS: '1s' } });
const countClosed = async (): Promise<number> =>
  readScrape((await expectStatus(posthorn.api('GET', '/metrics'), 200)).text).value(
    'posthorn_unread_answers_total',
  );

test('the connection of a client that reads nothing is closed; others are not', async () => {
  const { port } = new URL(posthorn.url);
  const socket = connect({ host: '127.0.0.1', port: Number(port) });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {}).pause();
  // More than the buffers of the system hold, in answers to pipelined requests.
  const request = `GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n`;
  socket.write(request.repeat(100));
  expect(await countClosed()).toBe(0);
  await eventually('it is closed', async () => (await countClosed()) === 1, { timeoutMs: 20_000 });
  expect(posthorn.output()).toContain('closed connections whose clients do not read the answer');
  // Its own end hears of it when it reads at last.
  socket.resume();
  await eventually('the client sees it', () => socket.destroyed);
});
