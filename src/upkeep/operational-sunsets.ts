/**
 * Tells operators and tenants that a version of an event type has passed its sunset, with the endpoints that still pin it.
 * Deliveries go on.
 */
import type { Clock } from '../domain/clock.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import { matchesType } from '../domain/event.ts';
import { newEventId, publicId } from '../domain/ids.ts';
import { operationalTypes } from '../domain/operational.ts';
import { resolvePin } from '../domain/version-pins.ts';
import type { OperationalEvent, OperationalRound, SunsetVersion } from '../ports/operational-store.ts';
import type { VersionDirectory } from '../ports/version-directory.ts';
import type { FindSubscribers } from './operational-subscribers.ts';

export interface SunsetOptions {
  readonly clock: Clock;
  readonly endpoints: { all(): Iterable<Endpoint> };
  readonly versions: VersionDirectory;
  readonly operatorTenant: string;
  readonly publicUrl: string;
}

const TYPE = operationalTypes.versionSunset;
/** An event names so many endpoints. `GET /v1/event-types/{name}/pins` lists all of them. */
const MAX_ENDPOINTS = 20;

/** Publishes one event per version, for the operator and for each tenant whose endpoints pin it, if they subscribe. */
export async function publishSunsets(
  round: OperationalRound,
  subscribersOf: FindSubscribers,
  options: SunsetOptions,
): Promise<void> {
  const events: OperationalEvent[] = [];
  for (const version of await round.takeSunsets()) {
    const pinned = findPinned(version, options);
    const operators = subscribersOf(options.operatorTenant, TYPE).filter(({ operator }) => operator);
    if (operators.length > 0)
      events.push(toEvent(options, options.operatorTenant, version, pinned, operators));
    for (const [tenant, own] of Map.groupBy(pinned, (endpoint) => endpoint.tenant)) {
      const subscribers = subscribersOf(tenant, TYPE).filter(({ operator }) => !operator);
      if (subscribers.length > 0) events.push(toEvent(options, tenant, version, own, subscribers));
    }
  }
  await round.publish(events);
}

function findPinned(
  { eventType, version }: SunsetVersion,
  { endpoints, versions }: SunsetOptions,
): Endpoint[] {
  const known = versions.versionsOf(eventType);
  return [...endpoints.all()].filter(
    ({ apiVersion, deleted, events }) =>
      apiVersion !== null &&
      !deleted &&
      events.some((pattern) => matchesType(pattern, eventType)) &&
      resolvePin(known, apiVersion)?.name === version,
  );
}

function toEvent(
  { clock, publicUrl }: SunsetOptions,
  tenant: string,
  { eventType, version, sunsetAt }: SunsetVersion,
  pinned: readonly Endpoint[],
  receivers: readonly Endpoint[],
): OperationalEvent {
  return {
    id: newEventId(clock.now()),
    tenant,
    type: TYPE,
    data: {
      at: new Date(clock.now()).toISOString(),
      event_type: eventType,
      version,
      sunset_at: new Date(sunsetAt).toISOString(),
      pinned: pinned.length,
      endpoints: pinned.slice(0, MAX_ENDPOINTS).map((endpoint) => ({
        id: publicId('ep', endpoint.id),
        tenant: endpoint.tenant,
        api_version: endpoint.apiVersion,
        console_url: `${publicUrl}/console/endpoints/${publicId('ep', endpoint.id)}`,
      })),
    },
    endpointIds: receivers.map(({ id }) => id),
  };
}
