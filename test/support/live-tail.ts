/** A client of `GET /v1/stream`. */
import { Agent, request } from 'undici';
import { expect, onTestFinished } from 'vitest';
import { eventually } from './eventually.ts';

export interface Shown {
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts on the parts it knows
  readonly data: any;
}

export interface TailReader {
  readonly shown: readonly Shown[];
  /** Resolves with the first message that matches, including earlier ones. */
  find(what: string, fits: (message: Shown) => boolean): Promise<Shown>;
  of(event: string): Shown[];
  /** Stops reading, so that messages are buffered. */
  pause(): void;
  resume(): void;
  /** Resolves when the server ends the stream. */
  readonly ended: Promise<void>;
  readonly comments: () => number;
}

export async function openTail(
  { url, key }: { url: string; key: string },
  query = '',
  options: { key?: string } = {},
): Promise<TailReader> {
  const agent = new Agent({ bodyTimeout: 0 });
  const { statusCode, headers, body } = await request(`${url}/v1/stream?${query}`, {
    dispatcher: agent,
    headers: { authorization: `Bearer ${options.key ?? key}` },
  });
  onTestFinished(() => agent.destroy());
  expect(statusCode).toBe(200);
  expect(headers['content-type']).toBe('text/event-stream');
  const shown: Shown[] = [];
  let comments = 0;
  let text = '';
  body.setEncoding('utf8');
  body.on('data', (chunk: string) => {
    text += chunk;
    const blocks = text.split('\n\n');
    text = blocks.pop()!;
    for (const block of blocks) {
      const message = /^event: (.*)\ndata: (.*)$/.exec(block);
      if (message !== null) shown.push({ event: message[1]!, data: JSON.parse(message[2]!) });
      else if (block.startsWith(':')) comments += 1;
    }
  });
  const ended = new Promise<void>((resolve) => {
    body.on('end', resolve);
    body.on('error', () => resolve());
  });
  const find = (what: string, fits: (message: Shown) => boolean) =>
    eventually(what, () => shown.find(fits), { saw: () => shown.slice(-20) });
  await find('it is ready', ({ event }) => event === 'ready');
  return {
    shown,
    find,
    of: (event) => shown.filter((message) => message.event === event),
    pause: () => void body.pause(),
    resume: () => void body.resume(),
    ended,
    comments: () => comments,
  };
}
