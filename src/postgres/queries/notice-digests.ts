/** Notices that wait for the end of their notifier's window. */
import type { Uuid } from '../../domain/ids.ts';
import { MAX_ITEMS, type NoticeItem, type PendingNotice } from '../../domain/notices.ts';
import type { OperationalType } from '../../domain/operational.ts';
import type { DueDigest } from '../../ports/operational-store.ts';
import type { Client } from '../database.ts';

/** SQL for the notifiers whose window has ended. A window that begins in the future is from before the clock stepped back. */
export const dueNotifiers = (windowSeconds: string): string =>
  `select endpoint_id from posthorn.notice_digests group by endpoint_id
    having min(since) <= now() - make_interval(secs => ${windowSeconds}::float8) or min(since) > now()`;

interface Row {
  readonly endpoint_id: Uuid;
  readonly type: OperationalType;
  readonly tenant: string;
  readonly count: number;
  readonly reports: number;
  readonly items: readonly NoticeItem[];
}

/** One row per notifier, type and tenant, because a statement cannot add to the same row twice. */
function toRows(notices: readonly PendingNotice[]): Row[] {
  const rows = new Map<string, Row>();
  for (const { notifierId, type, count, item } of notices) {
    const tenant = item.tenant ?? '';
    const key = `${notifierId} ${type} ${tenant}`;
    const row = rows.get(key) ?? { endpoint_id: notifierId, type, tenant, count: 0, reports: 0, items: [] };
    const items = row.items.length < MAX_ITEMS ? [...row.items, item] : row.items;
    rows.set(key, { ...row, count: row.count + count, reports: row.reports + 1, items });
  }
  return [...rows.values()];
}

export async function addNotices(client: Client, notices: readonly PendingNotice[]): Promise<void> {
  if (notices.length === 0) return;
  await client.query(
    `insert into posthorn.notice_digests as d (endpoint_id, type, tenant, count, reports, items)
     select endpoint_id, type, tenant, count, reports, items
       from jsonb_to_recordset($1::jsonb)
            as t(endpoint_id uuid, type text, tenant text, count bigint, reports bigint, items jsonb)
         on conflict (endpoint_id, type, tenant) do update
        set count = d.count + excluded.count, reports = d.reports + excluded.reports,
            items = case when jsonb_array_length(d.items) < ${MAX_ITEMS} then d.items || excluded.items else d.items end`,
    [JSON.stringify(toRows(notices))],
  );
}

/** Removes the notices of notifiers whose window has ended, and returns one digest for each that still exists. */
export async function takeDigests(client: Client, windowMs: number): Promise<DueDigest[]> {
  const { rows } = await client.query<DueDigest>(
    `with taken as (
       delete from posthorn.notice_digests where endpoint_id in (${dueNotifiers('$1')}) returning *
     ), groups as (
       select t.endpoint_id, t.type, min(t.since) as since, sum(t.count)::float8 as count, sum(t.reports)::float8 as reports,
              (select jsonb_agg(i.item order by i.item ->> 'at')
                 from (select jsonb_array_elements(x.items) as item from taken x
                        where x.endpoint_id = t.endpoint_id and x.type = t.type limit ${MAX_ITEMS}) as i) as items
         from taken t group by t.endpoint_id, t.type
     )
     select g.endpoint_id as "notifierId", e.tenant, extract(epoch from min(g.since))::float8 * 1000 as since,
            jsonb_agg(jsonb_build_object('type', g.type, 'count', g.count, 'reports', g.reports, 'items', g.items)
                      order by g.since, g.type) as groups
       from groups g join posthorn.endpoints e on e.id = g.endpoint_id and e.deleted_at is null
      group by g.endpoint_id, e.tenant`,
    [windowMs / 1000],
  );
  return rows;
}
