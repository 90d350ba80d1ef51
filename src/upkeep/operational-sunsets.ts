/**
 * Tells operators and tenants that an event type or a version has passed its sunset, with the endpoints that still subscribe
 * to the type or pin the version. Deliveries go on.
 */
import type { Clock } from '../domain/clock.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import { matchesType } from '../domain/event.ts';
import { newEventId, publicId } from '../domain/ids.ts';
import { inTurns } from '../domain/in-turns.ts';
import type { PendingNotice } from '../domain/notices.ts';
import { type OperationalType, operationalTypes } from '../domain/operational.ts';
import { resolvePin } from '../domain/version-pins.ts';
import type { OperationalEvent, OperationalRound, PassedSunset } from '../ports/operational-store.ts';
import type { VersionDirectory } from '../ports/version-directory.ts';
import { collectNotifiers, type FindNotices } from './notifiers.ts';
import { collectSubscribers, type FindSubscribers, hasSubscriber } from './operational-subscribers.ts';

export interface SunsetOptions {
  readonly clock: Clock;
  readonly endpoints: { all(): Iterable<Endpoint>; operational(): Iterable<Endpoint> };
  readonly versions: VersionDirectory;
  readonly operatorTenant: string;
  readonly publicUrl: string;
}

const { versionSunset: VERSION, eventTypeSunset: EVENT_TYPE } = operationalTypes;
/** An event names at most this many endpoints. The API lists all of them. */
const MAX_ENDPOINTS = 20;

/** Finds the endpoints and notifiers that are told. */
interface Audience {
  readonly subscribersOf: FindSubscribers;
  readonly noticesAbout: FindNotices;
}

/** Publishes one event per sunset, for the operator and for each tenant with such endpoints, if they subscribe. */
export async function publishSunsets(
  runRound: (work: (round: OperationalRound) => Promise<boolean>) => Promise<unknown>,
  options: SunsetOptions,
): Promise<void> {
  const { endpoints, versions } = options;
  if (!versions.hasDeprecations) return;
  const noticesAbout = collectNotifiers(endpoints.operational());
  // Sunsets that nobody wants to know about stay unreported until somebody subscribes.
  const isWanted = (type: OperationalType): boolean =>
    hasSubscriber(endpoints.operational(), type) || noticesAbout.hasAny(type);
  const kinds = { types: isWanted(EVENT_TYPE), versions: isWanted(VERSION) };
  if (!kinds.types && !kinds.versions) return;
  const audience = { subscribersOf: collectSubscribers(endpoints.operational()), noticesAbout };
  await runRound(async (round) => {
    const events: OperationalEvent[] = [];
    const notices: PendingNotice[] = [];
    for (const sunset of await round.takeSunsets(kinds)) {
      const report = await reportSunset(sunset, audience, options);
      events.push(...report.events);
      notices.push(...report.notices);
    }
    await round.addNotices(notices);
    await round.publish(events);
    return true;
  });
}

async function reportSunset(
  sunset: PassedSunset,
  { subscribersOf, noticesAbout }: Audience,
  options: SunsetOptions,
): Promise<{ events: OperationalEvent[]; notices: PendingNotice[] }> {
  const type = sunset.version === null ? EVENT_TYPE : VERSION;
  const { clock, operatorTenant } = options;
  const concerned = await findConcerned(sunset, options);
  const events: OperationalEvent[] = [];
  const addEvent = (tenant: string, data: OperationalEvent['data'], receivers: readonly Endpoint[]): void => {
    if (receivers.length === 0) return;
    const endpointIds = receivers.map(({ id }) => id);
    events.push({ id: newEventId(clock.now()), tenant, type, data, endpointIds });
  };
  const all = toPayload(sunset, concerned, options);
  addEvent(
    operatorTenant,
    all,
    subscribersOf(operatorTenant, type).filter(({ operator }) => operator),
  );
  const notices = noticesAbout(type, null, all);
  for (const [tenant, own] of Map.groupBy(concerned, (endpoint) => endpoint.tenant)) {
    const data = toPayload(sunset, own, options);
    addEvent(
      tenant,
      data,
      subscribersOf(tenant, type).filter(({ operator }) => !operator),
    );
    notices.push(...noticesAbout.ofTenant(tenant, type, data));
  }
  return { events, notices };
}

/** The endpoints that get the version because they pin it, or that subscribe to the event type. */
async function findConcerned(
  { eventType, version }: PassedSunset,
  { endpoints, versions }: SunsetOptions,
): Promise<Endpoint[]> {
  const known = versions.versionsOf(eventType);
  const isPinned = ({ apiVersion }: Endpoint): boolean =>
    apiVersion !== null && resolvePin(known, apiVersion)?.name === version;
  const concerned: Endpoint[] = [];
  for await (const turn of inTurns(endpoints.all()))
    for (const endpoint of turn) {
      if (endpoint.deleted || (version !== null && !isPinned(endpoint))) continue;
      if (endpoint.events.some((pattern) => matchesType(pattern, eventType))) concerned.push(endpoint);
    }
  return concerned;
}

function toPayload(
  { eventType, version, sunsetAt }: PassedSunset,
  concerned: readonly Endpoint[],
  { clock, publicUrl }: SunsetOptions,
): OperationalEvent['data'] {
  const counts = version === null ? { subscribed: concerned.length } : { version, pinned: concerned.length };
  return {
    at: new Date(clock.now()).toISOString(),
    event_type: eventType,
    ...counts,
    sunset_at: new Date(sunsetAt).toISOString(),
    endpoints: concerned.slice(0, MAX_ENDPOINTS).map((endpoint) => ({
      id: publicId('ep', endpoint.id),
      tenant: endpoint.tenant,
      api_version: endpoint.apiVersion,
      console_url: `${publicUrl}/console/endpoints/${publicId('ep', endpoint.id)}`,
    })),
    console_url: `${publicUrl}/console/event-types/${encodeURIComponent(eventType)}`,
  };
}
