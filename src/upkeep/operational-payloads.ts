/** The `data` of operational events. See docs/operational-events.md. */
import { eventIdOfDelivery, publicId, type Uuid } from '../domain/ids.ts';
import type {
  ArchiveFailure,
  NotedEndpoint,
  OldestWaiting,
  OperationalNote,
} from '../ports/operational-store.ts';

type Payload = Readonly<Record<string, unknown>>;

/** Producers choose event types, so there may be any number of them. */
const MAX_TYPES = 20;

const isoTime = (ms: number): string => new Date(ms).toISOString();

function describeEndpoint(endpoint: NotedEndpoint, publicUrl: string): Payload {
  const id = publicId('ep', endpoint.id);
  return {
    id,
    // Leave out the path, which may contain a token. The console shows the URL to those who may see it.
    host: URL.parse(endpoint.url)?.host ?? null,
    description: endpoint.description,
    metadata: endpoint.metadata,
    enabled: endpoint.enabled,
    disabled_reason: endpoint.disabledReason,
    console_url: `${publicUrl}/console/endpoints/${id}`,
  };
}

export function endpointPayload(note: OperationalNote, endpoint: NotedEndpoint, publicUrl: string): Payload {
  return {
    tenant: endpoint.tenant,
    at: isoTime(note.at),
    endpoint: describeEndpoint(endpoint, publicUrl),
    ...note.detail,
  };
}

/** `detail` of a note about dead deliveries. */
interface Deaths {
  readonly count: number;
  readonly reason: string;
  readonly event_type: string;
  readonly delivery_id: Uuid;
  readonly attempts: number;
  readonly status_code: number | null;
  readonly error_class: string | null;
}

/** `notes` are all notes of one endpoint, oldest first. */
export function deathsPayload(
  notes: readonly OperationalNote[],
  endpoint: NotedEndpoint,
  publicUrl: string,
): Payload {
  const reasons = new Map<string, number>();
  const types = new Map<string, number>();
  const add = (counts: Map<string, number>, name: string, count: number): void =>
    void counts.set(name, (counts.get(name) ?? 0) + count);
  let count = 0;
  for (const { detail } of notes) {
    const deaths = detail as unknown as Deaths;
    count += deaths.count;
    add(reasons, deaths.reason, deaths.count);
    add(types, deaths.event_type, deaths.count);
  }
  const last = notes.at(-1)!;
  const { delivery_id, event_type, reason, attempts, status_code, error_class } =
    last.detail as unknown as Deaths;
  const id = publicId('dlv', delivery_id);
  return {
    tenant: endpoint.tenant,
    at: isoTime(last.at),
    endpoint: describeEndpoint(endpoint, publicUrl),
    count,
    since: isoTime(notes[0]!.at),
    reasons: Object.fromEntries(reasons),
    event_types: Object.fromEntries([...types].sort((a, b) => b[1] - a[1]).slice(0, MAX_TYPES)),
    last: {
      delivery_id: id,
      event_id: publicId('evt', eventIdOfDelivery(delivery_id)),
      event_type,
      reason,
      attempts,
      status_code,
      error_class,
      console_url: `${publicUrl}/console/deliveries/${id}`,
    },
  };
}

export interface ThresholdCrossing {
  readonly state: 'above' | 'below';
  readonly threshold: number;
  readonly value: number;
}

export function deadLettersPayload(
  { state, threshold, value }: ThresholdCrossing,
  now: number,
  publicUrl: string,
): Payload {
  return {
    at: isoTime(now),
    state,
    threshold,
    dead_letters: value,
    console_url: `${publicUrl}/console/dead-letters`,
  };
}

export function queueAgePayload(
  { state, threshold, value }: ThresholdCrossing,
  oldest: OldestWaiting | null,
  now: number,
  publicUrl: string,
): Payload {
  const id = oldest && publicId('dlv', oldest.deliveryId);
  return {
    at: isoTime(now),
    state,
    threshold_seconds: threshold / 1000,
    oldest_age_seconds: Math.round(value / 1000),
    oldest: oldest && {
      delivery_id: id,
      endpoint_id: publicId('ep', oldest.endpointId),
      tenant: oldest.tenant,
      console_url: `${publicUrl}/console/deliveries/${id}`,
    },
  };
}

/** Null: the archive can be written again. */
export function archivePayload(failure: ArchiveFailure | null, now: number): Payload {
  return {
    at: isoTime(now),
    state: failure === null ? 'recovered' : 'failing',
    since: failure && isoTime(failure.since),
    partition: failure?.partition ?? null,
    error: failure?.error ?? null,
  };
}
