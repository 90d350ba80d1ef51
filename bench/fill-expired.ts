import { firstIdAt } from '../src/domain/ids.ts';

export type Query = <T extends Record<string, unknown>>(text: string, values?: unknown[]) => Promise<T[]>;

const DAY_MS = 86_400_000;
const ROWS_PER_FILL = 100_000;

/** Fills a day, 50 days ago, with events that no delivery needs. Returns the name of their partition. */
export async function fillExpired(
  query: Query,
  { rows, dataBytes }: { readonly rows: number; readonly dataBytes: number },
  onProgress: (text: string) => void,
): Promise<string> {
  const dayMs = Math.floor(Date.now() / DAY_MS) * DAY_MS - 50 * DAY_MS;
  const [made] = await query<{ name: string }>(
    "select posthorn.create_partition('events', to_timestamp($1), to_timestamp($2)) as name",
    [dayMs / 1000, dayMs / 1000 + 86_400],
  );
  for (const table of ['deliveries', 'attempts'])
    await query('select posthorn.create_partition($1, to_timestamp($2), to_timestamp($3))', [
      table,
      dayMs / 1000,
      dayMs / 1000 + 86_400,
    ]);
  const prefix = firstIdAt(dayMs + 3_600_000).slice(0, 13);
  for (let first = 0; first < rows; first += ROWS_PER_FILL) {
    await query(
      `insert into posthorn.events (id, tenant, type, data, deliveries)
       select ('${prefix}-8000-8000-' || lpad(to_hex(n), 7, '0') || '00000')::uuid, 'tenant-' || n % 20, 'order.paid',
              convert_to('{"n":' || n || ',"text":"' || repeat(md5(n::text), $3 / 32) || '"}', 'UTF8'), 0
         from generate_series($1::bigint, $2::bigint) n`,
      [first, Math.min(rows, first + ROWS_PER_FILL) - 1, dataBytes],
    );
    onProgress(`filling ${first.toLocaleString('en')} of ${rows.toLocaleString('en')}`);
  }
  await query('vacuum (analyze) posthorn.events');
  return made!.name;
}
