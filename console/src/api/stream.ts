/** `GET /v1/stream`, read with fetch: an EventSource cannot send the key in a header. Reconnects by itself. */
import { ApiError, send } from './client.ts';
import { asApiError } from './query.ts';

export interface StreamMessage {
  readonly event: string;
  readonly data: Record<string, unknown>;
}

export interface StreamEvents {
  message(message: StreamMessage): void;
  /** Null: connected. */
  state(error: ApiError | null): void;
}

const RECONNECT_MS = 2_000;

export function openStream(path: string, events: StreamEvents): () => void {
  const stop = new AbortController();
  void run();
  return () => stop.abort();

  async function run(): Promise<void> {
    while (!stop.signal.aborted) {
      try {
        const response = await send('GET', path, undefined, stop.signal);
        events.state(null);
        await read(response, (message) => events.message(message));
        if (!stop.signal.aborted)
          events.state(new ApiError(0, 'closed', 'The stream ended. Connecting again…'));
      } catch (error) {
        if (stop.signal.aborted) return;
        const failure = asApiError(error);
        events.state(failure);
        if (failure.status >= 400 && failure.status < 500 && failure.status !== 429) return;
      }
      await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
    }
  }
}

async function read(response: Response, deliver: (message: StreamMessage) => void): Promise<void> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split(/\r?\n\r?\n/);
    text = blocks.pop()!;
    for (const block of blocks) {
      const message = parse(block);
      if (message !== null) deliver(message);
    }
  }
}

export function parse(block: string): StreamMessage | null {
  let event = 'message';
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith('event:')) event = line.slice(6).trim();
    else if (line.startsWith('data:')) data.push(line.slice(5).trimStart());
  }
  if (data.length === 0) return null;
  try {
    return { event, data: JSON.parse(data.join('\n')) as Record<string, unknown> };
  } catch {
    return null;
  }
}
