/** Reads `GET /v1/stream` with fetch, because an EventSource cannot send the key in a header. Reconnects. */
import { ApiError, sendRequest } from './client.ts';
import { asApiError } from './query.ts';

export interface StreamMessage {
  readonly event: string;
  readonly data: Record<string, unknown>;
}

export interface StreamListener {
  onMessage(message: StreamMessage): void;
  /** Null: connected. */
  onStateChange(error: ApiError | null): void;
}

const RECONNECT_MS = 2_000;

/** Opens the stream and returns a function that closes it. */
export function openStream(path: string, listener: StreamListener): () => void {
  const abort = new AbortController();
  void run();
  return () => abort.abort();

  async function run(): Promise<void> {
    while (!abort.signal.aborted) {
      try {
        const response = await sendRequest('GET', path, undefined, abort.signal);
        listener.onStateChange(null);
        await readMessages(response, (message) => listener.onMessage(message));
        if (!abort.signal.aborted)
          listener.onStateChange(new ApiError(0, 'closed', 'The stream ended. Reconnecting…'));
      } catch (error) {
        if (abort.signal.aborted) return;
        const failure = asApiError(error);
        listener.onStateChange(failure);
        if (failure.status >= 400 && failure.status < 500 && failure.status !== 429) return;
      }
      await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
    }
  }
}

async function readMessages(response: Response, onMessage: (message: StreamMessage) => void): Promise<void> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split(/\r?\n\r?\n/);
    text = blocks.pop()!;
    for (const block of blocks) {
      const message = parseMessage(block);
      if (message !== null) onMessage(message);
    }
  }
}

/** Parses one block of server-sent events. Returns null for comments and for invalid JSON. */
export function parseMessage(block: string): StreamMessage | null {
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
