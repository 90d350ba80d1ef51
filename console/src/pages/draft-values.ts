/** The text of a form's fields, and the values of the API. */
export const toText = (value: unknown): string =>
  value === null || value === undefined ? '' : String(value);

/** Returns text that is not a number unchanged, so that the API rejects it with its own message. */
export const toNumber = (value: string): number | string =>
  value.trim() !== '' && Number.isFinite(Number(value)) ? Number(value) : value;

/** The fields that are not empty, as numbers. */
export const pickNumbers = (entries: Record<string, string>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(entries)
      .filter(([, value]) => value.trim() !== '')
      .map(([name, value]) => [name, toNumber(value)]),
  );
