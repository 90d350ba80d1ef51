/** Rows of a list as the text of a file. */
export type ExportFormat = 'csv' | 'ndjson';

type Row = Readonly<Record<string, unknown>>;

export function toExportText(rows: readonly Row[], format: ExportFormat): string {
  return format === 'ndjson' ? rows.map((row) => `${JSON.stringify(row)}\n`).join('') : toCsv(rows);
}

/** RFC 4180. Nested objects have a column for each member (`health.waiting`), arrays are JSON. */
function toCsv(rows: readonly Row[]): string {
  const flat = rows.map((row) => new Map(flatten(row)));
  const columns = [...new Set(flat.flatMap((row) => [...row.keys()]))];
  const lines = [columns, ...flat.map((row) => columns.map((column) => row.get(column) ?? ''))];
  return lines.map((cells) => `${cells.map(quote).join(',')}\r\n`).join('');
}

function flatten(value: Row, prefix = ''): [string, string][] {
  return Object.entries(value).flatMap(([name, member]): [string, string][] => {
    const path = `${prefix}${name}`;
    if (typeof member === 'object' && member !== null && !Array.isArray(member))
      return flatten(member as Row, `${path}.`);
    if (member === null || member === undefined) return [[path, '']];
    return [[path, typeof member === 'object' ? JSON.stringify(member) : String(member)]];
  });
}

/** A spreadsheet would run a text that begins like a formula: an apostrophe prevents it. */
function quote(text: string): string {
  const safe = /^[=+@\t\r]|^-(?!\d+(\.\d+)?$)/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
