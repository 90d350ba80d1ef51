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
  /** The notices for the notifiers of a tenant, without those of the operator. */
  ofTenant(tenant: string, type: OperationalType, data: OperationalEvent['data']): PendingNotice[];
  /** Whether a notifier of the operator reports this type. */
  hasOperator(type: OperationalType): boolean;
  /** Whether any notifier reports this type. */
  hasAny(type: OperationalType): boolean;
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
      .map((each) => toNotice(each, type, data));
  return Object.assign(find, {
    ofTenant: (tenant: string, type: OperationalType, data: OperationalEvent['data']) =>
      (byTenant.get(tenant) ?? []).filter(reports(type)).map((each) => toNotice(each, type, data)),
    hasOperator: (type: OperationalType) => operators.some(reports(type)),
    hasAny: (type: OperationalType) => [...operators, ...byTenant.values()].flat().some(reports(type)),
  });
}

const toNotice = (
  { id }: Notifier,
  type: OperationalType,
  data: OperationalEvent['data'],
): PendingNotice => ({ notifierId: id, type, count: countOf(type, data), item: itemOf(type, data) });

const isActive = (endpoint: Endpoint): endpoint is Notifier =>
  endpoint.notifier !== null &&
  endpoint.notifier.confirmation === undefined &&
  endpoint.enabled &&
  !endpoint.deleted;
