import type { Endpoint } from '../domain/endpoint.ts';
import { matchesType } from '../domain/event.ts';
import { countOf, itemOf, type NotifierConfig, type PendingNotice } from '../domain/notices.ts';
import type { OperationalType } from '../domain/operational.ts';
import type { NotedEndpoint, OperationalEvent } from '../ports/operational-store.ts';

type Notifier = Endpoint & { readonly notifier: NotifierConfig };

export interface FindNotices {
  /** The notices for all notifiers that report this event. `about` is null if it concerns the whole deployment. */
  (
    type: OperationalType,
    about: Pick<NotedEndpoint, 'id' | 'tenant'> | null,
    data: OperationalEvent['data'],
  ): PendingNotice[];
  /** Whether a notifier of the operator reports this type. */
  hasOperator(type: OperationalType): boolean;
}

/** A notifier reports what concerns its tenant; one of the operator reports everything. */
export function collectNotifiers(endpoints: Iterable<Endpoint>): FindNotices {
  const operators: Notifier[] = [];
  const byTenant = new Map<string, Notifier[]>();
  for (const endpoint of endpoints) {
    if (!isActive(endpoint)) continue;
    if (endpoint.operator) operators.push(endpoint);
    else byTenant.set(endpoint.tenant, [...(byTenant.get(endpoint.tenant) ?? []), endpoint]);
  }
  const reports = (type: OperationalType) => (each: Notifier) =>
    each.notifier.events.some((pattern) => matchesType(pattern, type));
  const find = (
    type: OperationalType,
    about: Pick<NotedEndpoint, 'id' | 'tenant'> | null,
    data: OperationalEvent['data'],
  ): PendingNotice[] =>
    [...operators, ...((about && byTenant.get(about.tenant)) ?? [])]
      // A notifier does not report itself: it probably cannot be reached.
      .filter((each) => each.id !== about?.id && reports(type)(each))
      .map(({ id }) => ({ notifierId: id, type, count: countOf(type, data), item: itemOf(type, data) }));
  return Object.assign(find, { hasOperator: (type: OperationalType) => operators.some(reports(type)) });
}

const isActive = (endpoint: Endpoint): endpoint is Notifier =>
  endpoint.notifier !== null &&
  endpoint.notifier.confirmation === undefined &&
  endpoint.enabled &&
  !endpoint.deleted;
