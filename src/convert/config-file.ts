/** The types of `posthorn.config.ts`, for its author. */

/**
 * Changes the `data` of an event from one version to another. Give it a signature (`(data: OrderV2): OrderV1 => …`) and
 * TypeScript checks it. It must be pure and return JSON: Posthorn stores what it returned, and sends that in every retry.
 *
 * Numbers that a JavaScript number cannot hold (more than 15 digits) arrive as `JSON.rawJSON` objects: pass them on.
 */
// biome-ignore lint/suspicious/noExplicitAny: the author's own type belongs here, and parameters are contravariant.
export type Converter = (data: any) => unknown;

/** `2026-04-01→2025-10-01`: from the version on the left to the one on the right. */
export type ConverterKey = `${string}→${string}` | `${string}->${string}`;

/** By event type, then by step. */
export type Converters = Readonly<Record<string, Readonly<Record<ConverterKey, Converter>>>>;

/** What `posthorn.config.ts` exports: `export default { converters } satisfies PosthornConfig`. */
export interface PosthornConfig {
  readonly converters?: Converters;
}
