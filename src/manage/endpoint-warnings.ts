/** Warnings about settings that are valid and probably a mistake. They are in the answers to POST and PATCH. */
import type { EndpointConfig } from '../domain/endpoint-config.ts';
import { matchesType, RESERVED_TYPE_PREFIX } from '../domain/event.ts';
import { isOperatorName } from '../domain/filter-syntax.ts';
import { idPrefixes, publicId, type Uuid } from '../domain/ids.ts';
import { operationalTypes } from '../domain/operational.ts';
import { PatternSet } from '../domain/pattern-set.ts';
import { type FieldError, Problem } from '../domain/problem.ts';
import type { Queryable } from '../postgres/database.ts';
import {
  findEndpointsWithUrl,
  findPatternsWithoutType,
  type SameUrlEndpoint,
} from '../postgres/queries/endpoint-limits.ts';
import { COMPARED_EVENTS, findUnpublishedPatterns } from '../postgres/queries/published-types.ts';

interface WarnedEndpoint {
  readonly id: Uuid;
  readonly tenant: string;
  readonly url: string;
  readonly config: EndpointConfig;
}

/** How many endpoints are compared. One example is enough for a warning, and a tenant may have thousands of endpoints with one URL. */
const MAX_COMPARED = 100;
/** Endpoints per query. With the longest lists of events, about 50 ms pass until other requests get their turn. */
const COMPARED_AT_ONCE = 50;
const MAX_WARNINGS = 20;

/** What is suspicious about an endpoint, as it is stored. */
export async function findWarnings(client: Queryable, endpoint: WarnedEndpoint): Promise<FieldError[]> {
  const other = await findOverlapping(client, endpoint, MAX_COMPARED);
  const warnings = [
    ...(await findUnknownTypes(client, endpoint.tenant, endpoint.config.events ?? [])),
    ...findSuspectOperators(endpoint.config.filter ?? null, 'filter', false),
    ...(other === null
      ? []
      : [{ path: 'url', message: `${sameUrl(other)}: its receiver gets events twice` }]),
  ];
  return warnings.slice(0, MAX_WARNINGS);
}

/**
 * Throws `endpoint_exists` if another endpoint of the tenant has the same URL and gets some of the same events. Call it
 * with the tenant locked by `lockSubscriptions`. Filters are not compared.
 */
export async function refuseOverlapping(client: Queryable, endpoint: WarnedEndpoint): Promise<void> {
  const other = await findOverlapping(client, endpoint, Number.POSITIVE_INFINITY);
  if (other === null) return;
  const message = sameUrl(other);
  throw new Problem('endpoint_exists', `url: ${message}. Change that endpoint, or delete it first.`, {
    errors: [{ path: 'url', message }],
  });
}

const sameUrl = (id: Uuid): string =>
  `is also the URL of ${publicId(idPrefixes.endpoint, id)}, which gets some of the same events`;

/** Returns the oldest of up to `maxCompared` endpoints with the same URL that gets some of the same events. */
async function findOverlapping(
  client: Queryable,
  endpoint: WarnedEndpoint,
  maxCompared: number,
): Promise<Uuid | null> {
  const events = new PatternSet(endpoint.config.events ?? EVERY_TYPE);
  const channels = new Set(endpoint.config.channels ?? []);
  let after: Uuid | null = null;
  for (let compared = 0; compared < maxCompared; compared += COMPARED_AT_ONCE) {
    const others: SameUrlEndpoint[] = await findEndpointsWithUrl(client, endpoint, {
      after,
      limit: COMPARED_AT_ONCE,
    });
    const found = others.find(
      ({ config }) =>
        shareChannel(channels, config.channels ?? []) &&
        (config.events ?? EVERY_TYPE).some((pattern) => events.overlaps(pattern)),
    );
    if (found !== undefined) return found.id;
    if (others.length < COMPARED_AT_ONCE) return null;
    after = others.at(-1)!.id;
  }
  return null;
}

const EVERY_TYPE = ['*'];

/** Whether one event could reach both. Without channels, an endpoint gets the events of all channels. */
const shareChannel = (one: ReadonlySet<string>, other: readonly string[]): boolean =>
  one.size === 0 || other.length === 0 || other.some((name) => one.has(name));

/** Compares with the catalogue, or if it is empty with what the tenant publishes. */
async function findUnknownTypes(
  client: Queryable,
  tenant: string,
  patterns: readonly string[],
): Promise<FieldError[]> {
  const named = patterns.filter((pattern) => pattern !== '*' && !isOperationalPattern(pattern));
  if (named.length === 0) return [];
  const unknown = await findPatternsWithoutType(client, named);
  const unpublished = await findUnpublishedPatterns(client, tenant, named);
  return patterns.flatMap((pattern, index) => {
    const path = `events[${index}]`;
    if (unknown.has(pattern))
      return [{ path, message: `"${pattern}" matches no event type in the catalogue` }];
    if (unpublished.has(pattern))
      return [
        {
          path,
          message: `"${pattern}" matches none of the tenant's newest ${COMPARED_EVENTS.toLocaleString('en')} events`,
        },
      ];
    return [];
  });
}

/** The catalogue has none of Posthorn's own events. A misspelled one is reported like any other type. */
const isOperationalPattern = (pattern: string): boolean =>
  pattern.startsWith(RESERVED_TYPE_PREFIX) &&
  Object.values(operationalTypes).some((type) => matchesType(pattern, type));

/** Fields of a filter that are named like an operator: `{"data.amount": {"gte": 100}}` looks for `data.amount.gte`. */
function findSuspectOperators(filter: unknown, at: string, isBelowPath: boolean): FieldError[] {
  if (Array.isArray(filter))
    return filter.flatMap((part, index) => findSuspectOperators(part, `${at}[${index}]`, isBelowPath));
  if (typeof filter !== 'object' || filter === null) return [];
  return Object.entries(filter).flatMap(([key, value]) => {
    const path = `${at}.${key}`;
    if (isBelowPath && isOperatorName(`$${key}`))
      return [{ path, message: `is a field named "${key}"; the operator is "$${key}"` }];
    return findSuspectOperators(value, path, isBelowPath || !key.startsWith('$'));
  });
}
