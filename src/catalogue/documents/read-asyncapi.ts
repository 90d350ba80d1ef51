import { isObject, type Json } from '../keywords.ts';
import { bundleSchema, follow, versionOf } from './bundle.ts';
import type { CatalogueFile, TypeEntry } from './catalogue-file.ts';

/** Reads the messages of all channels of an AsyncAPI 3 document: each is an event type, with the version of the document. */
export function readAsyncApi(document: Json): CatalogueFile {
  if (!String(document.asyncapi).startsWith('3.')) throw new Error('asyncapi must be 3');
  const version = versionOf(document);
  const types = new Map<string, TypeEntry>();
  const channels = isObject(document.channels) ? Object.values(document.channels) : [];
  for (const each of channels) {
    const channel = follow(document, each);
    if (!isObject(channel) || !isObject(channel.messages)) continue;
    for (const [key, reference] of Object.entries(channel.messages)) {
      const message = follow(document, reference);
      if (!isObject(message)) continue;
      const name = String(message.name ?? key);
      const description = String(message.description ?? message.summary ?? message.title ?? '');
      types.set(name, {
        description,
        versions: { [version]: { description, schema: payloadOf(document, message) } },
      });
    }
  }
  return { event_types: Object.fromEntries(types) };
}

const JSON_SCHEMA = /^application\/(schema|vnd\.aai\.asyncapi)\b/;

/** `payload` is a schema, or a schema with its format. Throws an error if the format is not JSON Schema. */
function payloadOf(document: Json, { payload }: Json) {
  if (payload === undefined) return null;
  const wrapper = follow(document, payload);
  if (!isObject(wrapper) || wrapper.schemaFormat === undefined) return bundleSchema(document, payload);
  const format = String(wrapper.schemaFormat);
  if (!JSON_SCHEMA.test(format))
    throw new Error(`schemaFormat ${format} is not supported: only JSON Schema is`);
  return bundleSchema(document, wrapper.schema);
}
