/** Every list with every filter, as requests against a database that `fill-history.ts` has filled. */
import { firstIdAt, type IdPrefix, publicId } from '../src/domain/ids.ts';
import { COMMON_TYPE, RARE_TYPE } from './fill-history.ts';
import type { Postgres } from './harness.ts';

export interface ListRequest {
  readonly name: string;
  readonly path: string;
  /** Of a key for this tenant; null: of an admin. */
  readonly tenant: string | null;
  /** Deep in the history; null: the list has no pages that far down. */
  readonly deepCursor: string | null;
}

interface Samples {
  readonly tenants: { readonly big: string; readonly middle: string; readonly small: string };
  readonly endpoints: { readonly busy: string; readonly quiet: string };
  readonly event: string;
  readonly key: string;
  readonly actor: string;
}

/** The tenants with the most endpoints, a few, and one or two: they take different ways. */
async function sample(postgres: Postgres): Promise<Samples> {
  const tenants = await postgres.query<{ tenant: string }>(
    'select tenant from posthorn.endpoints group by tenant order by count(*) desc',
  );
  const endpoints = await postgres.query<{ id: string }>('select id from posthorn.endpoints order by id');
  const [event] = await postgres.query<{ id: string; key: string }>(
    'select event_id as id, key from posthorn.idempotency_keys order by key limit 1',
  );
  return {
    tenants: {
      big: tenants[0]!.tenant,
      middle: tenants[Math.floor(tenants.length / 2)]!.tenant,
      small: tenants.at(-1)!.tenant,
    },
    endpoints: { busy: publicId('ep', endpoints[0]!.id), quiet: publicId('ep', endpoints.at(-1)!.id) },
    event: publicId('evt', event!.id),
    key: event!.key,
    actor: 'key-7',
  };
}

export async function listRequests(postgres: Postgres, spanMs: number): Promise<ListRequest[]> {
  const { tenants, endpoints, event, key, actor } = await sample(postgres);
  const now = Date.now();
  const time = (share: number) => new Date(now - share * spanMs).toISOString();
  const narrow = `since=${time(0.5)}&until=${time(0.499)}`;
  const wide = `since=${time(0.9)}&until=${time(0.1)}`;
  const types = [`type=${COMMON_TYPE}`, 'type=type.19', `type=${RARE_TYPE}`, 'type=no.such'];
  const deep = (prefix: IdPrefix) => publicId(prefix, firstIdAt(now - 0.7 * spanMs));
  const statuses = ['pending', 'retrying', 'delivered', 'dead', 'discarded', 'skipped'];

  const filters: Record<string, { prefix: IdPrefix; queries: string[] }> = {
    '/v1/deliveries': {
      prefix: 'dlv',
      queries: [
        '',
        ...statuses.map((status) => `status=${status}`),
        ...types,
        `status=delivered&${types[1]}`,
        `status=dead&${types[1]}`,
        `status=retrying&${types[2]}`,
        `event_id=${event}`,
        narrow,
        wide,
        `status=skipped&${wide}`,
        'limit=250',
      ],
    },
    '/v1/events': {
      prefix: 'evt',
      queries: [
        '',
        ...types,
        narrow,
        wide,
        `idempotency_key=${key}`,
        'has=dead',
        'has=waiting',
        `has=dead&${types[1]}`,
        'limit=250',
      ],
    },
    '/v1/dead-letters': {
      prefix: 'dlv',
      queries: [
        '',
        ...types,
        'reason=exhausted',
        'reason=gone',
        'reason=worker_crash',
        narrow,
        wide,
        'limit=250',
      ],
    },
    '/v1/audit': {
      prefix: 'aud',
      queries: [
        '',
        'action=endpoint.update',
        'action=key.delete',
        'object_id=ep-7',
        `actor=${actor}`,
        `actor=${actor}&action=key.delete`,
        narrow,
        wide,
      ],
    },
    '/v1/tasks': { prefix: 'task', queries: [''] },
    '/v1/endpoints': { prefix: 'ep', queries: ['', 'limit=250'] },
  };
  const list: ListRequest[] = [];
  const add = (tenant: string | null, path: string, query: string, prefix: IdPrefix | null) => {
    const who = Object.entries(tenants).find(([, name]) => name === tenant)?.[0] ?? 'admin';
    const shown = query
      .replaceAll(/(evt|ep)_\w+/g, '…')
      .replace(narrow, 'since, until (narrow)')
      .replace(wide, 'since, until (wide)');
    const name = `${path.replaceAll(/(evt|ep)_\w+/g, ':id').replace('/v1', '')}${shown === '' ? '' : `?${shown}`} (${who})`;
    list.push({
      name,
      path: query === '' ? path : `${path}?${query}`,
      tenant,
      deepCursor: prefix && deep(prefix),
    });
  };
  for (const [path, { prefix, queries }] of Object.entries(filters))
    for (const tenant of [null, ...Object.values(tenants)])
      for (const query of queries)
        add(tenant, path, query, prefix === 'ep' || prefix === 'task' ? null : prefix);
  for (const [which, id] of Object.entries(endpoints)) {
    for (const query of [
      '',
      ...statuses.map((status) => `status=${status}`),
      types[1]!,
      types[2]!,
      narrow,
      wide,
    ]) {
      add(null, '/v1/deliveries', [`endpoint_id=${id}`, query].filter(Boolean).join('&'), 'dlv');
      const { name, ...rest } = list.pop()!;
      list.push({ ...rest, name: name.replace('(admin)', `(${which})`) });
    }
    add(null, '/v1/dead-letters', `endpoint_id=${id}`, 'dlv');
  }
  add(null, `/v1/endpoints/${endpoints.busy}/deliveries`, '', 'dlv');
  add(null, `/v1/events/${event}/deliveries`, '', null);
  add(null, `/v1/events/${event}/attempts`, '', null);
  for (const path of ['/v1/keys', '/v1/tenants', '/v1/event-types', '/v1/dead-letters/groups'])
    add(null, path, '', null);
  return list;
}
