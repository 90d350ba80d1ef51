/**
 * The receivers of the chaos run, in their own process: one path per endpoint, whose behaviour can be changed. Every
 * request is recorded with its times and its result.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { BATCH_RESULT_TYPE } from '../../src/domain/batch.ts';
import { PICKY } from './endpoints.ts';
import type { Arrival, Behaviour, ReceiverCommand, ReceiverReply } from './receivers.ts';

interface BatchedEvent {
  readonly id: string;
  readonly data: { readonly number?: number };
}

const behaviours = new Map<string, Behaviour>();
const arrivals: Arrival[] = [];
const open = new Map<string, number>();
/** The events that picky receivers have named as failed, by endpoint. */
const named = new Set<string>();

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  response.on('error', () => {});
  request.on('error', () => {});
  request.on('end', () => answer(request, response, Buffer.concat(chunks)));
});
server.keepAliveTimeout = 0;
server.requestTimeout = 0;
server.headersTimeout = 0;
server.on('clientError', (_error, socket) => socket.destroy());

function eventsOf({ headers }: IncomingMessage, body: Buffer): BatchedEvent[] | null {
  if (headers['posthorn-batch'] === undefined) return null;
  return (JSON.parse(body.toString()) as { events: BatchedEvent[] }).events;
}

/**
 * The answer of a picky receiver: rejects a batch with an event that it never takes, finds some batches too large, and names
 * some events as failed, once each. Rare enough for a FIFO endpoint to keep up.
 */
function judge(endpoint: string, events: readonly BatchedEvent[]): { status: number; failed: string[] } {
  const isMultiple = (of: number) => (event: BatchedEvent) => (event.data.number ?? 1) % of === 0;
  if (events.some(isMultiple(29))) return { status: 422, failed: [] };
  if (events.length > 3 && isMultiple(3)(events[0]!)) return { status: 413, failed: [] };
  const failed = events.filter((event) => isMultiple(13)(event) && !named.has(`${endpoint} ${event.id}`));
  for (const { id } of failed) named.add(`${endpoint} ${id}`);
  return { status: failed.length === 0 ? 200 : 207, failed: failed.map(({ id }) => id) };
}

function answer(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
  const endpoint = request.url!.slice(1);
  const { headers, socket } = request;
  const openNow = (open.get(endpoint) ?? 0) + 1;
  open.set(endpoint, openNow);
  const events = eventsOf(request, body);
  const failed: string[] = [];
  const arrival: Arrival = {
    endpoint,
    event: String(headers['webhook-id']),
    events: events?.map(({ id }) => id) ?? null,
    failed,
    attempt: Number(headers['posthorn-attempt']),
    at: Date.now(),
    endedAt: null,
    status: null,
    open: openNow,
  };
  arrivals.push(arrival);
  const ended = (status: number | null): void => {
    if (arrival.endedAt !== null) return;
    arrival.endedAt = Date.now();
    arrival.status = status;
    open.set(endpoint, open.get(endpoint)! - 1);
  };
  response.on('finish', () => ended(response.statusCode));
  response.on('close', () => ended(null));
  const reply = (status: number): void => {
    if (socket.destroyed) return;
    response.writeHead(status, { 'content-length': 0 }).end();
  };
  const accept = (): void => {
    if (events === null || !endpoint.startsWith(PICKY)) return reply(200);
    const judged = judge(endpoint, events);
    if (judged.failed.length === 0) return reply(judged.status);
    failed.push(...judged.failed);
    if (!socket.destroyed)
      response
        .writeHead(judged.status, { 'content-type': BATCH_RESULT_TYPE })
        .end(JSON.stringify({ failed: [...failed, 'evt_unknown'] }));
  };
  const behaviour = behaviours.get(endpoint) ?? 'ok';
  if (behaviour === 'ok') accept();
  else if (behaviour === 'fail') reply(500);
  else if (behaviour === 'slow') setTimeout(accept, 200 + Math.random() * 600);
  else if (behaviour === 'reset') socket.resetAndDestroy();
  // 'hang': no answer until the sender gives up
}

const sendToParent = (reply: ReceiverReply): void => void process.send!(reply);

process.on('message', (command: ReceiverCommand) => {
  if (command.kind === 'behaviours') {
    for (const [endpoint, behaviour] of Object.entries(command.behaviours))
      behaviours.set(endpoint, behaviour);
  } else {
    sendToParent({ kind: 'arrivals', arrivals });
  }
});
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () =>
  sendToParent({ kind: 'listening', port: (server.address() as { port: number }).port }),
);
