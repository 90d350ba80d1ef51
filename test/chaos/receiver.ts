/**
 * The receivers of the chaos run, in their own process: one path per endpoint, whose behaviour can be changed. Every
 * request is recorded with its times and its result.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Arrival, Behaviour, ReceiverCommand, ReceiverReply } from './receivers.ts';

const behaviours = new Map<string, Behaviour>();
const arrivals: Arrival[] = [];
const open = new Map<string, number>();

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

function eventsOf({ headers }: IncomingMessage, body: Buffer): string[] | null {
  if (headers['posthorn-batch'] === undefined) return null;
  const { events } = JSON.parse(body.toString()) as { events: { id: string }[] };
  return events.map(({ id }) => id);
}

function answer(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
  const endpoint = request.url!.slice(1);
  const { headers, socket } = request;
  const openNow = (open.get(endpoint) ?? 0) + 1;
  open.set(endpoint, openNow);
  const arrival: Arrival = {
    endpoint,
    event: String(headers['webhook-id']),
    events: eventsOf(request, body),
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
  const behaviour = behaviours.get(endpoint) ?? 'ok';
  if (behaviour === 'ok') reply(200);
  else if (behaviour === 'fail') reply(500);
  else if (behaviour === 'slow') setTimeout(() => reply(200), 200 + Math.random() * 600);
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
