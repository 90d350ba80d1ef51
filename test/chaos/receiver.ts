/**
 * The receivers of the chaos run, in their own process: one path per endpoint, whose behaviour can be changed. Every
 * request is recorded with its times and its result.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Arrival, Mood, ReceiverOrder, ReceiverReply } from './receivers.ts';

const moods = new Map<string, Mood>();
const arrivals: Arrival[] = [];
const open = new Map<string, number>();

const server = createServer((request, response) => {
  request.resume();
  response.on('error', () => {});
  request.on('error', () => {});
  request.on('end', () => answer(request, response));
});
server.keepAliveTimeout = 0;
server.requestTimeout = 0;
server.headersTimeout = 0;
server.on('clientError', (_error, socket) => socket.destroy());

function answer(request: IncomingMessage, response: ServerResponse): void {
  const endpoint = request.url!.slice(1);
  const { headers, socket } = request;
  const openNow = (open.get(endpoint) ?? 0) + 1;
  open.set(endpoint, openNow);
  const arrival: Arrival = {
    endpoint,
    event: String(headers['webhook-id']),
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
  const mood = moods.get(endpoint) ?? 'ok';
  if (mood === 'ok') reply(200);
  else if (mood === 'fail') reply(500);
  else if (mood === 'slow') setTimeout(() => reply(200), 200 + Math.random() * 600);
  else if (mood === 'reset') socket.resetAndDestroy();
  // 'hang': no answer until the sender gives up
}

const sendToParent = (reply: ReceiverReply): void => void process.send!(reply);

process.on('message', (order: ReceiverOrder) => {
  if (order.kind === 'moods') {
    for (const [endpoint, mood] of Object.entries(order.moods)) moods.set(endpoint, mood);
  } else {
    sendToParent({ kind: 'arrivals', arrivals });
  }
});
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () =>
  sendToParent({ kind: 'listening', port: (server.address() as { port: number }).port }),
);
