/** Warnings about settings that are valid and probably a mistake. They are in the answers to POST and PATCH. */
import type { EndpointConfig } from '../domain/endpoint-config.ts';
import { matchesType, patternsOverlap, RESERVED_TYPE_PREFIX } from '../domain/event.ts';
import { isOperatorName } from '../domain/filter-syntax.ts';
import { idPrefixes, publicId, type Uuid } from '../domain/ids.ts';
import { operationalTypes } from '../domain/operational.ts';
import { type FieldError, Problem } from '../domain/problem.ts';
import type { Queryable } from '../postgres/database.ts';
import { endpointsWithUrl, patternsWithoutType } from '../postgres/queries/endpoint-limits.ts';

interface WarnedEndpoint {
  readonly id: Uuid;
  readonly tenant: string;
  readonly url: string;
  readonly config: EndpointConfig;
}

/** A warning needs one example; a tenant may have thousands of endpoints with one URL. */
const NEIGHBOURS_COMPARED = 100;
const MAX_WARNINGS = 20;

/** What is suspicious about an endpoint, as it is stored. */
export async function warningsAbout(client: Queryable, endpoint: WarnedEndpoint): Promise<FieldError[]> {
  const other = await findOverlapping(client, endpoint, NEIGHBOURS_COMPARED);
  const warnings = [
    ...(await unknownTypes(client, endpoint.config.events ?? [])),
    ...suspectOperators(endpoint.config.filter ?? null, 'filter', false),
    ...(other === null
      ? []
      : [{ path: 'url', message: `${sameUrl(other)}: its receiver gets events twice` }]),
  ];
  return warnings.slice(0, MAX_WARNINGS);
}

/** Throws `endpoint_exists` if another endpoint of the tenant has the same URL and gets some of the same events. */
export async function refuseOverlapping(client: Queryable, endpoint: WarnedEndpoint): Promise<void> {
  const other = await findOverlapping(client, endpoint, null);
  if (other === null) return;
  const message = sameUrl(other);
  throw new Problem('endpoint_exists', `url: ${message}. Change that endpoint, or delete it first.`, {
    errors: [{ path: 'url', message }],
  });
}

const sameUrl = (id: Uuid): string =>
  `is also the URL of ${publicId(idPrefixes.endpoint, id)}, which gets some of the same events`;

async function findOverlapping(
  client: Queryable,
  endpoint: WarnedEndpoint,
  limit: number | null,
): Promise<Uuid | null> {
  const others = await endpointsWithUrl(client, endpoint, limit);
  return others.find(({ config }) => overlap(config, endpoint.config))?.id ?? null;
}

type Subscription = Pick<EndpointConfig, 'events' | 'channels'>;

/** Whether one event could reach both. Filters are not compared. */
function overlap(one: Subscription, other: Subscription): boolean {
  const channels = new Set(one.channels ?? []);
  const isSeparate =
    channels.size > 0 &&
    (other.channels ?? []).length > 0 &&
    !other.channels!.some((name) => channels.has(name));
  if (isSeparate) return false;
  const patterns = other.events ?? ['*'];
  return (one.events ?? ['*']).some((a) => patterns.some((b) => patternsOverlap(a, b)));
}

async function unknownTypes(client: Queryable, patterns: readonly string[]): Promise<FieldError[]> {
  const unknown = await patternsWithoutType(
    client,
    patterns.filter((pattern) => pattern !== '*' && !isOperationalPattern(pattern)),
  );
  return patterns.flatMap((pattern, index) =>
    unknown.has(pattern)
      ? [{ path: `events[${index}]`, message: `"${pattern}" matches no event type in the catalogue` }]
      : [],
  );
}

/** The catalogue has none of Posthorn's own events. A misspelled one is reported like any other type. */
const isOperationalPattern = (pattern: string): boolean =>
  pattern.startsWith(RESERVED_TYPE_PREFIX) &&
  Object.values(operationalTypes).some((type) => matchesType(pattern, type));

/** Fields of a filter that are named like an operator: `{"data.amount": {"gte": 100}}` looks for `data.amount.gte`. */
function suspectOperators(filter: unknown, at: string, isBelowPath: boolean): FieldError[] {
  if (Array.isArray(filter))
    return filter.flatMap((part, index) => suspectOperators(part, `${at}[${index}]`, isBelowPath));
  if (typeof filter !== 'object' || filter === null) return [];
  return Object.entries(filter).flatMap(([key, value]) => {
    const path = `${at}.${key}`;
    if (isBelowPath && isOperatorName(`$${key}`))
      return [{ path, message: `is a field named "${key}"; the operator is "$${key}"` }];
    return suspectOperators(value, path, isBelowPath || !key.startsWith('$'));
  });
}
