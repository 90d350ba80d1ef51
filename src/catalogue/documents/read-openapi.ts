import { isObject, type Json } from '../keywords.ts';
import { bundleSchema, follow, versionOf } from './bundle.ts';
import type { CatalogueFile, TypeEntry } from './catalogue-file.ts';

/** Marks a webhook that Posthorn has exported: its body is the envelope, and the payload is in `data`. */
export const EVENT_TYPE_EXTENSION = 'x-posthorn-event-type';
export const VERSION_EXTENSION = 'x-posthorn-version';

/** Reads `webhooks` of an OpenAPI 3.1 document: each is an event type, with the version of the document. */
export function readOpenApi(document: Json): CatalogueFile {
  if (!/^3\.[1-9]/.test(String(document.openapi))) throw new Error('openapi must be 3.1 or later');
  if (!isObject(document.webhooks)) throw new Error('the OpenAPI document has no "webhooks"');
  const types = new Map<string, TypeEntry>();
  for (const [key, item] of Object.entries(document.webhooks)) {
    const path = follow(document, item);
    const operation = isObject(path) ? path.post : undefined;
    if (!isObject(operation)) continue;
    const name = String(operation[EVENT_TYPE_EXTENSION] ?? key);
    const version = String(operation[VERSION_EXTENSION] ?? versionOf(document));
    const media = mediaOf(document, operation);
    const isOurs = operation[EVENT_TYPE_EXTENSION] !== undefined;
    const schema = follow(document, media.schema);
    const payload =
      isOurs && isObject(schema) && isObject(schema.properties) ? schema.properties.data : media.schema;
    const known = types.get(name);
    const description = String(operation.description ?? operation.summary ?? '');
    types.set(name, {
      description: known?.description ?? description,
      versions: {
        ...known?.versions,
        [version]: {
          description,
          schema: payload === undefined ? null : bundleSchema(document, payload),
          ...(media.example !== undefined && !isOurs && { example: media.example }),
        },
      },
    });
  }
  return { event_types: Object.fromEntries(types) };
}

function mediaOf(document: Json, operation: Json): Json {
  const body = follow(document, operation.requestBody);
  const content = isObject(body) && isObject(body.content) ? body.content : {};
  const media = content['application/json'] ?? Object.values(content)[0];
  return isObject(media) ? media : {};
}
