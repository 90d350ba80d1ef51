/**
 * Where a field of an event comes from in a Kafka record: `topic`, `key`, `header:NAME`, `text:CONSTANT`, or a path into the
 * JSON value such as `$.order.type`. `$` alone is the whole value.
 */
export type FieldSource =
  | { readonly from: 'topic' }
  | { readonly from: 'key' }
  | { readonly from: 'header'; readonly name: string }
  | { readonly from: 'text'; readonly text: string }
  | { readonly from: 'path'; readonly names: readonly string[] };

export const FIELD_SOURCE_RULE =
  'topic, key, header:NAME, text:CONSTANT, or a path into the JSON value such as $.order.type';

const PATH = /^\$(\.[^.]{1,128}){0,16}$/;

/** Returns null if the text is not a field source. */
export function parseFieldSource(text: string): FieldSource | null {
  if (text === 'topic' || text === 'key') return { from: text };
  if (text.startsWith('header:') && text.length > 'header:'.length)
    return { from: 'header', name: text.slice('header:'.length) };
  if (text.startsWith('text:') && text.length > 'text:'.length)
    return { from: 'text', text: text.slice('text:'.length) };
  return PATH.test(text) ? { from: 'path', names: text.split('.').slice(1) } : null;
}
