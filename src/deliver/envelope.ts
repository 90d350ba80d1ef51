/**
 * The request body: an envelope around the producer's own JSON text, which is copied byte for byte.
 * It depends on nothing but the endpoint and the event, so the body of any past attempt can be shown again.
 */
import type { Endpoint } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import { publicId, timeOfId } from '../domain/ids.ts';

const CLOSING_BRACE = 0x7d;

function envelopeHead(endpoint: Endpoint, event: EventContent): string {
  const id = publicId('evt', event.id);
  const timestamp = new Date(timeOfId(event.id)).toISOString();
  let text = `{"id":"${id}","type":${JSON.stringify(event.type)},"timestamp":"${timestamp}"`;
  if (event.schemaVersion !== null) text += `,"schema_version":${JSON.stringify(event.schemaVersion)}`;
  if (endpoint.apiVersion !== null) text += `,"api_version":${JSON.stringify(endpoint.apiVersion)}`;
  if (event.idempotencyKey !== null) text += `,"idempotency_key":${JSON.stringify(event.idempotencyKey)}`;
  return text;
}

function linkTo(event: EventContent, publicUrl: string): string {
  const base = publicUrl.endsWith('/') ? publicUrl.slice(0, -1) : publicUrl;
  return `${base}/v1/events/${publicId('evt', event.id)}`;
}

/**
 * The exact request body. `headroom` bytes are left free in the same memory before it, for a signer that has to
 * put something in front of the body without copying it.
 */
export function buildBody(endpoint: Endpoint, event: EventContent, publicUrl: string, headroom = 0): Buffer {
  let head = envelopeHead(endpoint, event);
  if (endpoint.payload === 'thin') {
    head += `,"url":${JSON.stringify(linkTo(event, publicUrl))}}`;
    const length = Buffer.byteLength(head);
    const memory = Buffer.allocUnsafe(headroom + length);
    memory.write(head, headroom);
    return memory.subarray(headroom);
  }
  head += ',"data":';
  const headLength = Buffer.byteLength(head);
  const memory = Buffer.allocUnsafe(headroom + headLength + event.data.length + 1);
  memory.write(head, headroom);
  memory.set(event.data, headroom + headLength);
  memory[memory.length - 1] = CLOSING_BRACE;
  return memory.subarray(headroom);
}
