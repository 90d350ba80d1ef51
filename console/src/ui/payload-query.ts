/**
 * What a user types to search inside payloads, as the API's `where`: `data.order_id = ord_123` → `data.order_id:ord_123`.
 * The path may leave out `data.`. Null if there is no path or no value.
 */
export function toWhere(text: string): string | null {
  const match = /^\s*([^\s:=]+)\s*[:=]\s*(.+?)\s*$/.exec(text);
  if (match === null) return null;
  const [, path = '', value = ''] = match;
  return `${/^data(\.|$)/.test(path) ? path : `data.${path}`}:${value}`;
}

/** `data.order_id:ord_123` → `data.order_id = ord_123` */
export const describeWhere = (where: string): string => where.replace(/\s*:\s*/, ' = ');
