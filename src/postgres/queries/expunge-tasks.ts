/** Removes the ids of a tenant from tasks that do not name the tenant: an admin key ordered them by endpoint, event or delivery. */
import type { Client } from '../database.ts';

/** Call it before the endpoints and events of the tenant are deleted: only they tell which tenant an id belongs to. */
export async function expungeTasksOf(client: Client, tenant: string): Promise<void> {
  await client.query(FORGET_TASKS, [tenant]);
}

/**
 * Deletes tasks about an endpoint or an event of the tenant. From lists of deliveries it removes those of the tenant: the others may
 * belong to other tenants. The audit entry of the task stays, without its selection.
 */
const FORGET_TASKS = `
  with others as materialized (
    select t.id, t.selection from posthorn.tasks t where t.tenant is null and t.kind in ('replay', 'discard', 'restore')
  ),
  about_one as (
    delete from posthorn.tasks t using others o
     where t.id = o.id
       and (exists (select from posthorn.endpoints e where e.tenant = $1 and e.id::text = o.selection ->> 'endpointId')
            or exists (select from posthorn.events e where e.tenant = $1 and e.id = (o.selection ->> 'eventId')::uuid))
    returning t.id, o.selection ->> 'eventId' as event_id
  ),
  listed as materialized (
    select o.id, d.id as delivery_id
      from others o
     cross join lateral jsonb_array_elements_text(
             case jsonb_typeof(o.selection -> 'ids') when 'array' then o.selection -> 'ids' else '[]' end) as d(id)
      join posthorn.events e on e.id = posthorn.event_of_delivery(d.id::uuid) and e.tenant = $1
  ),
  about_some as (
    update posthorn.tasks t
       set selection = jsonb_set(t.selection, '{ids}', (t.selection -> 'ids') - l.ids)
      from (select id, array_agg(delivery_id) as ids from listed group by id) l
     where t.id = l.id
    returning t.id
  )
  update posthorn.audit_log a
     set changes = '[]', object_id = case when a.object_id like 'task\\_%' then a.object_id end
    from (select posthorn.public_id('task', id) as object_id from about_one
          union all select posthorn.public_id('task', id) from about_some
          union all select posthorn.public_id('evt', event_id::uuid) from about_one where event_id is not null) o
   where a.object_id = o.object_id and a.tenant is null`;
