/** Requests for every list with every filter, for a database that `fill-history.ts` has filled. */
import { firstIdAt, type IdPrefix, publicId } from '../src/domain/ids.ts';
import { COMMON_TYPE, RARE_TYPE } from './fill-history.ts';
import type { Postgres } from './harness.ts';

export interface ListRequest {
  readonly name: string;
  readonly path: string;
  /** The tenant of the key; null: an admin key. */
  readonly tenant: string | null;
  /** A cursor deep in the history; null: the list is short. */
  readonly deepCursor: string | null;
}

interface Samples {
  readonly tenants: { readonly big: string; readonly middle: string; readonly small: string };
  readonly endpoints: { readonly busy: string; readonly quiet: string };
  readonly event: string;
  readonly key: string;
  readonly actor: string;
}

/** Picks tenants with many, some and few endpoints, because the queries use different plans for them. */
async function findSamples(postgres: Postgres): Promise<Samples> {
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

const STATUSES = ['pending', 'retrying', 'delivered', 'dead', 'discarded', 'skipped'].map(
  (status) => `status=${status}`,
);
const TYPES = [`type=${COMMON_TYPE}`, 'type=type.19', `type=${RARE_TYPE}`, 'type=no.such'];
const [, RARER_TYPE, RAREST_TYPE] = TYPES;

interface TimeRanges {
  readonly narrow: string;
  readonly wide: string;
}

interface ListFilters {
  readonly path: string;
  /** The prefix of the cursor; null: the list is short. */
  readonly cursorPrefix: IdPrefix | null;
  readonly queries: readonly string[];
}

/** The lists that are requested with an admin key and with a key of every sampled tenant. */
function buildListFilters({ event, key, actor }: Samples, { narrow, wide }: TimeRanges): ListFilters[] {
  return [
    {
      path: '/v1/deliveries',
      cursorPrefix: 'dlv',
      queries: [
        '',
        ...STATUSES,
        ...TYPES,
        `status=delivered&${RARER_TYPE}`,
        `status=dead&${RARER_TYPE}`,
        `status=retrying&${RAREST_TYPE}`,
        `event_id=${event}`,
        narrow,
        wide,
        `status=skipped&${wide}`,
        'limit=250',
      ],
    },
    {
      path: '/v1/events',
      cursorPrefix: 'evt',
      queries: [
        '',
        ...TYPES,
        narrow,
        wide,
        `idempotency_key=${key}`,
        'has=dead',
        'has=waiting',
        `has=dead&${RARER_TYPE}`,
        'limit=250',
      ],
    },
    {
      path: '/v1/dead-letters',
      cursorPrefix: 'dlv',
      queries: [
        '',
        ...TYPES,
        'reason=exhausted',
        'reason=gone',
        'reason=worker_crash',
        narrow,
        wide,
        'limit=250',
      ],
    },
    {
      path: '/v1/audit',
      cursorPrefix: 'aud',
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
    { path: '/v1/tasks', cursorPrefix: null, queries: [''] },
    { path: '/v1/endpoints', cursorPrefix: null, queries: ['', 'limit=250'] },
  ];
}

export async function buildListRequests(postgres: Postgres, spanMs: number): Promise<ListRequest[]> {
  const samples = await findSamples(postgres);
  const { tenants, endpoints, event } = samples;
  const now = Date.now();
  const time = (share: number) => new Date(now - share * spanMs).toISOString();
  const ranges: TimeRanges = {
    narrow: `since=${time(0.5)}&until=${time(0.499)}`,
    wide: `since=${time(0.9)}&until=${time(0.1)}`,
  };
  const requests: ListRequest[] = [];
  const add = (
    path: string,
    query: string,
    cursorPrefix: IdPrefix | null,
    tenant: string | null = null,
    caller = 'admin',
  ): void => {
    requests.push({
      name: `${describePath(path, query, ranges)} (${caller})`,
      path: query === '' ? path : `${path}?${query}`,
      tenant,
      deepCursor: cursorPrefix && publicId(cursorPrefix, firstIdAt(now - 0.7 * spanMs)),
    });
  };
  for (const { path, cursorPrefix, queries } of buildListFilters(samples, ranges))
    for (const query of queries) {
      add(path, query, cursorPrefix);
      for (const [size, tenant] of Object.entries(tenants)) add(path, query, cursorPrefix, tenant, size);
    }
  for (const [load, id] of Object.entries(endpoints)) {
    for (const query of ['', ...STATUSES, RARER_TYPE!, RAREST_TYPE!, ranges.narrow, ranges.wide])
      add('/v1/deliveries', [`endpoint_id=${id}`, query].filter(Boolean).join('&'), 'dlv', null, load);
    add('/v1/dead-letters', `endpoint_id=${id}`, 'dlv', null, load);
  }
  add(`/v1/endpoints/${endpoints.busy}/deliveries`, '', 'dlv');
  add(`/v1/events/${event}/deliveries`, '', null);
  add(`/v1/events/${event}/attempts`, '', null);
  for (const path of ['/v1/keys', '/v1/tenants', '/v1/event-types', '/v1/dead-letters/groups'])
    add(path, '', null);
  return requests;
}

/** The path and query without ids and times. */
function describePath(path: string, query: string, { narrow, wide }: TimeRanges): string {
  const shortPath = path.replaceAll(/(evt|ep)_\w+/g, ':id').replace('/v1', '');
  const shortQuery = query
    .replaceAll(/(evt|ep)_\w+/g, '…')
    .replace(narrow, 'since, until (narrow)')
    .replace(wide, 'since, until (wide)');
  return shortQuery === '' ? shortPath : `${shortPath}?${shortQuery}`;
}
