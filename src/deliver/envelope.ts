/**
 * The request body: an envelope around the producer's own JSON text, which is copied byte for byte. It depends only on
 * the endpoint and the event, so the body of a past attempt can be built again.
 */
import type { Endpoint } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import { publicId, timeOfId } from '../domain/ids.ts';
import { noticeBody } from './notice-body.ts';

const CLOSING_BRACE = 0x7d;

let lastMs = 0;
let lastTime = new Date(lastMs).toISOString();

/** Most events of a batch, and many that follow each other, have the same millisecond. */
function formatTime(ms: number): string {
  if (ms !== lastMs) lastTime = new Date(ms).toISOString();
  lastMs = ms;
  return lastTime;
}

function envelopeHead(endpoint: Endpoint, event: EventContent, id: string): string {
  const timestamp = formatTime(timeOfId(event.id));
  let text = `{"id":"${id}","type":${JSON.stringify(event.type)},"timestamp":"${timestamp}"`;
  if (event.schemaVersion !== null) text += `,"schema_version":${JSON.stringify(event.schemaVersion)}`;
  if (endpoint.apiVersion !== null) text += `,"api_version":${JSON.stringify(endpoint.apiVersion)}`;
  if (event.idempotencyKey !== null) text += `,"idempotency_key":${JSON.stringify(event.idempotencyKey)}`;
  return text;
}

function linkTo(id: string, publicUrl: string): string {
  const base = publicUrl.endsWith('/') ? publicUrl.slice(0, -1) : publicUrl;
  return `${base}/v1/events/${id}`;
}

/** A body in a buffer with free space before it, which signers write to. */
export interface Message {
  readonly memory: Buffer;
  readonly bodyAt: number;
}

export function buildMessage(
  endpoint: Endpoint,
  event: EventContent,
  eventId: string,
  publicUrl: string,
  headroom: number,
): Message {
  if (endpoint.notifier !== null) {
    const body = noticeBody(endpoint, event, publicUrl, null);
    return { memory: Buffer.concat([Buffer.alloc(headroom), body]), bodyAt: headroom };
  }
  const head = envelopeStart(endpoint, event, eventId, publicUrl);
  const thin = endpoint.payload === 'thin';
  const headLength = Buffer.byteLength(head);
  const dataLength = thin ? 0 : event.data.length;
  const memory = Buffer.allocUnsafe(headroom + headLength + dataLength + 1);
  memory.write(head, headroom);
  if (!thin) memory.set(event.data, headroom + headLength);
  memory[memory.length - 1] = CLOSING_BRACE;
  return { memory, bodyAt: headroom };
}

/** Everything before the producer's own bytes, or before the closing brace of a thin envelope. */
function envelopeStart(endpoint: Endpoint, event: EventContent, eventId: string, publicUrl: string): string {
  const head = envelopeHead(endpoint, event, eventId);
  return endpoint.payload === 'thin'
    ? `${head},"url":${JSON.stringify(linkTo(eventId, publicUrl))}`
    : `${head},"data":`;
}

/** The body of a batch: `{"id": "bat_…", "events": [envelope, …]}`. */
export function buildBatchMessage(
  endpoint: Endpoint,
  events: readonly EventContent[],
  batchId: string,
  publicUrl: string,
  headroom: number,
): Message {
  const thin = endpoint.payload === 'thin';
  const open = `{"id":"${batchId}","events":[`;
  const heads = events.map((event) => envelopeStart(endpoint, event, publicId('evt', event.id), publicUrl));
  let length = open.length + 2 + Math.max(0, events.length - 1);
  for (const [index, event] of events.entries())
    length += Buffer.byteLength(heads[index]!) + (thin ? 0 : event.data.length) + 1;
  const memory = Buffer.allocUnsafe(headroom + length);
  let at = headroom + memory.write(open, headroom);
  for (const [index, event] of events.entries()) {
    at += memory.write(`${index === 0 ? '' : ','}${heads[index]}`, at);
    if (!thin) {
      memory.set(event.data, at);
      at += event.data.length;
    }
    memory[at] = CLOSING_BRACE;
    at += 1;
  }
  memory.write(']}', at);
  return { memory, bodyAt: headroom };
}

/** The exact request body of any attempt of this event to this endpoint. */
export function buildBody(endpoint: Endpoint, event: EventContent, publicUrl: string): Buffer {
  return buildMessage(endpoint, event, publicId('evt', event.id), publicUrl, 0).memory;
}

/** The exact request body of any attempt of this batch. */
export function buildBatchBody(
  endpoint: Endpoint,
  events: readonly EventContent[],
  batchId: string,
  publicUrl: string,
): Buffer {
  return buildBatchMessage(endpoint, events, batchId, publicUrl, 0).memory;
}
