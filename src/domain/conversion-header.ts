/**
 * The header `posthorn-conversion` of a delivery to an endpoint with a pin, as a structured field (RFC 9651). It tells the
 * receiver how the payload came about, and the attempt log which stored payload was sent.
 *
 *   converted;from="2026-04-01";to="2025-10-01";converter="2f1c…"
 *   as-published;reason="no_converter"
 */
import { type AsPublishedReason, asPublishedReasons } from './version-pins.ts';

export const CONVERSION_HEADER = 'posthorn-conversion';

export type ConversionNote =
  | {
      readonly status: 'converted';
      readonly from: string;
      readonly to: string;
      /** Hash of the converters. */
      readonly converter: string;
    }
  | { readonly status: 'as_published'; readonly reason: AsPublishedReason };

export function writeConversionNote(note: ConversionNote): string {
  if (note.status === 'as_published') return `as-published;reason="${note.reason}"`;
  const { from, to, converter } = note;
  return `converted;from="${from}";to="${to}";converter="${converter}"`;
}

const CONVERTED = /^converted;from="([^"]+)";to="([^"]+)";converter="([0-9a-f]+)"$/;
const AS_PUBLISHED = /^as-published;reason="([a-z_]+)"$/;

/** Returns null for headers without a note. */
export function readConversionNote(headers: Readonly<Record<string, string>>): ConversionNote | null {
  const text = headers[CONVERSION_HEADER];
  if (text === undefined) return null;
  const [, from, to, converter] = CONVERTED.exec(text) ?? [];
  if (from !== undefined && to !== undefined && converter !== undefined)
    return { status: 'converted', from, to, converter };
  const reason = asPublishedReasons.find((each) => each === AS_PUBLISHED.exec(text)?.[1]);
  return reason === undefined ? null : { status: 'as_published', reason };
}

/** `deprecation` (RFC 9745) and `sunset` (RFC 8594) of the version that is sent. Null: neither applies. */
export function noticeHeaders(version: {
  readonly status: string;
  readonly createdAt: number;
  readonly deprecatedAt: number | null;
  readonly sunsetAt: number | null;
}): Readonly<Record<string, string>> | null {
  const isDeprecated = version.status === 'deprecated' || version.status === 'retired';
  if (!isDeprecated && version.sunsetAt === null) return null;
  const headers: Record<string, string> = {};
  if (isDeprecated)
    headers.deprecation = `@${Math.floor((version.deprecatedAt ?? version.createdAt) / 1000)}`;
  if (version.sunsetAt !== null) headers.sunset = new Date(version.sunsetAt).toUTCString();
  return headers;
}
