/**
 * The header `posthorn-conversion` of a delivery to an endpoint with a pin, as a structured field (RFC 9651). It tells the
 * receiver how the payload was converted, and the attempt log which stored payload was sent.
 *
 *   converted;from="2026-04-01";to="2025-10-01";converter="2f1c…"
 *   as-published;reason="no_converter"
 */
import {
  type AsPublishedReason,
  asPublishedReasons,
  type Deprecation,
  type TypeVersion,
} from './version-pins.ts';

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

/** Returns the earlier of the times of an event type and of its version. */
export const earlierDeprecation = (
  type: Deprecation | null,
  version: Omit<TypeVersion, 'name'> | null,
): Deprecation => ({
  deprecatedAt: earlier(type?.deprecatedAt ?? null, version && sinceWhen(version)),
  sunsetAt: earlier(type?.sunsetAt ?? null, version?.sunsetAt ?? null),
});

/**
 * Returns the headers `deprecation` (RFC 9745) and `sunset` (RFC 8594) of a request, with the earliest times of its events.
 * Null: neither header applies.
 */
export function deprecationHeaders(
  deprecations: readonly Deprecation[],
): Readonly<Record<string, string>> | null {
  let deprecatedAt: number | null = null;
  let sunsetAt: number | null = null;
  for (const each of deprecations) {
    deprecatedAt = earlier(deprecatedAt, each.deprecatedAt);
    sunsetAt = earlier(sunsetAt, each.sunsetAt);
  }
  if (deprecatedAt === null && sunsetAt === null) return null;
  return {
    ...(deprecatedAt !== null && { deprecation: `@${Math.floor(deprecatedAt / 1000)}` }),
    ...(sunsetAt !== null && { sunset: new Date(sunsetAt).toUTCString() }),
  };
}

/** Null: it is not deprecated. */
function sinceWhen({ status, deprecatedAt, createdAt }: Omit<TypeVersion, 'name'>): number | null {
  const isDeprecated = status === 'deprecated' || status === 'retired';
  return isDeprecated ? (deprecatedAt ?? createdAt) : null;
}

const earlier = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.min(one, other);
