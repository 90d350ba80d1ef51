/** Reads an event whose fields and `data` come separately, as those of a Kafka record do. */
import { isUtf8 } from 'node:buffer';
import type { NewEvent } from '../domain/event.ts';
import { Problem } from '../domain/problem.ts';
import {
  expectJson,
  JsonDepthError,
  JsonSyntaxError,
  scanObject,
  skipSpace,
  startsObject,
} from './json-scan.ts';
import { type ReadContext, type ReadLimits, readEvent } from './read-event.ts';

/** `fields`: as in `POST /v1/events`, without `data`. Throws a `Problem`. */
export function readEventFromParts(
  fields: Readonly<Record<string, unknown>>,
  data: Buffer,
  limits: ReadLimits,
  context: ReadContext,
): NewEvent {
  // Check `data` by itself first: a value such as `1,"tenant":"other"` must not add a field.
  expectValue(data, limits.maxNesting);
  const head = JSON.stringify(fields).slice(0, -1);
  return readEvent(Buffer.concat([Buffer.from(`${head},"data":`), data, Buffer.from('}')]), limits, context);
}

function expectValue(data: Buffer, maxNesting: number): void {
  if (!isUtf8(data)) throw new Problem('invalid', 'data: is not valid UTF-8');
  try {
    expectJson(data, maxNesting);
  } catch (error) {
    if (!(error instanceof JsonSyntaxError || error instanceof JsonDepthError)) throw error;
    throw new Problem('invalid', `data: is not valid JSON: ${error.message}`);
  }
}

/** Returns the bytes of the fields of a JSON object. Null: the text is not an object. Throws if it is not JSON. */
export function readJsonFields(json: Buffer, maxNesting: number): ReadonlyMap<string, Buffer> | null {
  const start = skipSpace(json, 0);
  if (!startsObject(json, start)) return null;
  const { fields } = scanObject(json, start, maxNesting);
  return new Map([...fields].map(([name, span]) => [name, json.subarray(span.start, span.end)]));
}
