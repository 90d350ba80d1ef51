/** Which tenants the payload of an operational event or of a message to a notifier names. Expunging a tenant deletes these. */

/** Only fields that Posthorn fills: the metadata of an endpoint may name other tenants. */
interface Payload {
  readonly tenant?: unknown;
  readonly oldest?: { readonly tenant?: unknown } | null;
  /** Set in a message to a notifier. */
  readonly groups?: unknown;
  /** Set in an event about a sunset. */
  readonly endpoints?: unknown;
}

/** Returns the tenants that the data of an operational event names. Empty also if it is not JSON. */
export function tenantsNamedIn(data: Uint8Array): string[] {
  const payload = parse(data);
  const { oldest, groups, endpoints } = payload ?? {};
  const items = listOf(groups).flatMap((group) =>
    listOf((group as { readonly items?: unknown } | null)?.items),
  );
  return [payload, oldest, ...items, ...listOf(endpoints)]
    .map((named) => (named as { readonly tenant?: unknown } | null | undefined)?.tenant)
    .filter((name) => typeof name === 'string');
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

function parse(data: Uint8Array): Payload | null {
  try {
    return JSON.parse(
      Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString(),
    ) as Payload | null;
  } catch {
    return null;
  }
}
