/**
 * Publishes operational events: they tell operators and tenants what happens to endpoints and deliveries.
 *
 *   something happens ──▶ note ──▶ one event per tenant that subscribes ──▶ outbox ──▶ stored, delivered, retried …
 *                     same commit       same commit that deletes the note     exactly once
 *
 * For notifiers (docs/notices.md) the same commit keeps notices. The first one begins a window. When the window ends, all
 * notices of the notifier become one event for it.
 *
 * One process at a time publishes; if it is killed, the next one finds the notes. Operational events never cause more
 * of themselves: dead deliveries of operational events get no note, nor does a circuit that opens because of one; a
 * circuit is reported closed only if it was reported open; an endpoint is disabled once, and enabled again by people;
 * the thresholds do not count operational events.
 */
import type { Clock } from '../domain/clock.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import { eventIdFromForeignId, newEventId, timeOfId, type Uuid } from '../domain/ids.ts';
import { type Digest, noticeTypes, type PendingNotice } from '../domain/notices.ts';
import { type OperationalType, operationalTypes } from '../domain/operational.ts';
import type { EndpointDirectory } from '../ports/endpoint-directory.ts';
import type {
  NotedEndpoint,
  OperationalEvent,
  OperationalNote,
  OperationalRound,
  OperationalStore,
} from '../ports/operational-store.ts';
import { collectNotifiers, type FindNotices } from './notifiers.ts';
import { deathsPayload, endpointPayload } from './operational-payloads.ts';
import { collectSubscribers, type FindSubscribers } from './operational-subscribers.ts';
import { publishSunsets, type SunsetOptions } from './operational-sunsets.ts';
import { checkThresholds, type ThresholdOptions } from './operational-thresholds.ts';
import { Recurring } from './recurring.ts';

export interface OperationalEventsOptions extends ThresholdOptions, SunsetOptions {
  readonly store: OperationalStore;
  readonly clock: Clock;
  readonly endpoints: Pick<EndpointDirectory, 'version' | 'all' | 'operational' | 'refresh'>;
  /** True in one process of the deployment. The others stand in for it, and look for work less often. */
  readonly isLeader: () => boolean;
  /** How often the leader looks for work. */
  readonly everyMs: number;
  readonly thresholdsEveryMs: number;
  /** The endpoints of this tenant with `operator` get the events about the endpoints of all tenants. */
  readonly operatorTenant: string;
  /** An endpoint's dead letters are reported at most once in this time. */
  readonly deadWindowMs: number;
  /** Notices of a notifier in this time are one message. */
  readonly noticeWindowMs: number;
  readonly publicUrl: string;
  readonly onProblem: (what: string, error: unknown) => void;
}

const NOTES_PER_ROUND = 5_000;
/** The other processes look for work this many times less often. */
const STAND_IN_FACTOR = 5;
/** If endpoints change again and again, the notes wait for the next round. */
const MAX_TRIES = 5;
/**
 * An endpoint gets no events about itself, because it probably cannot be reached. Dead letters are the exception: other
 * deliveries may arrive.
 */
const SENT_TO_ENDPOINT_ITSELF: ReadonlySet<OperationalType> = new Set([operationalTypes.deliveryDead]);

export class OperationalEvents extends Recurring {
  readonly #options: OperationalEventsOptions;
  #thresholdsCheckedAt = Number.NEGATIVE_INFINITY;

  constructor(options: OperationalEventsOptions) {
    super(options.clock, options.everyMs);
    this.#options = options;
  }

  protected override async work(): Promise<void> {
    const { store, clock, isLeader, everyMs, thresholdsEveryMs, noticeWindowMs, onProblem } = this.#options;
    this.pauseMs = isLeader() ? everyMs : everyMs * STAND_IN_FACTOR;
    try {
      const found = await store.findWork(noticeWindowMs);
      if (found.notes) await this.#publishNotes();
      if (found.digests) await store.runRound((round) => this.#runDigestRound(round));
      if (clock.monotonic() - this.#thresholdsCheckedAt < thresholdsEveryMs) return;
      this.#thresholdsCheckedAt = clock.monotonic();
      await this.#publishThresholds();
      await publishSunsets((work) => store.runRound(work), this.#options);
    } catch (error) {
      onProblem('publish operational events', error);
    }
  }

  /**
   * An endpoint that subscribed before something happened must get the event. So the endpoints in memory must be at least
   * as new as the notes; otherwise the round is rolled back and run again. The last try takes the endpoints as they are: a
   * tenant that changes its endpoints all the time must not stop the events of all tenants. `refresh` is called outside of
   * the round, which holds a connection already and must not wait for another one.
   */
  async #publishNotes(): Promise<void> {
    const { store, endpoints } = this.#options;
    for (let tries = 1; tries <= MAX_TRIES && !this.isStopped; tries += 1) {
      await endpoints.refresh();
      if (await store.runRound((round) => this.#runNotesRound(round, tries === MAX_TRIES))) return;
    }
  }

  /** Returns false if endpoints have changed since the refresh, unless this is the last try. */
  async #runNotesRound(round: OperationalRound, isLastTry: boolean): Promise<boolean> {
    const { endpoints, deadWindowMs } = this.#options;
    const notes = await round.takeNotes(deadWindowMs, NOTES_PER_ROUND);
    if (notes.length === 0) return true;
    if (!isLastTry && (await round.readEndpointVersion()) !== endpoints.version) return false;
    const subscribers = collectSubscribers(endpoints.operational());
    const noticesAbout = collectNotifiers(endpoints.operational());
    const noted = await round.loadEndpoints([...new Set(notes.map(({ endpointId }) => endpointId))]);
    const deaths = new Map<Uuid, OperationalNote[]>();
    const events: OperationalEvent[] = [];
    const notices: PendingNotice[] = [];
    for (const note of notes) {
      const endpoint = noted.get(note.endpointId);
      if (endpoint === undefined) continue;
      if (note.kind === operationalTypes.deliveryDead) {
        const earlier = deaths.get(endpoint.id);
        if (earlier === undefined) deaths.set(endpoint.id, [note]);
        else earlier.push(note);
      } else if (await isWorthReporting(round, note)) {
        const payload = endpointPayload(note, endpoint, this.#options.publicUrl);
        events.push(...this.#toEvents(subscribers, note, endpoint, payload));
        notices.push(...noticesAbout(note.kind, endpoint, payload));
      }
    }
    const ofDeaths = await this.#reportDeaths(round, subscribers, noticesAbout, noted, deaths);
    await round.addNotices([...notices, ...ofDeaths.notices]);
    await round.publish([...events, ...ofDeaths.events]);
    return true;
  }

  async #runDigestRound(round: OperationalRound): Promise<boolean> {
    const { clock, noticeWindowMs } = this.#options;
    const digests = await round.takeDigests(noticeWindowMs);
    const until = new Date(clock.now()).toISOString();
    await round.publish(
      digests.map(({ notifierId, tenant, since, groups }) => ({
        id: newEventId(clock.now()),
        tenant,
        type: noticeTypes.digest,
        data: { since: new Date(since).toISOString(), until, groups } satisfies Digest,
        endpointIds: [notifierId],
      })),
    );
    return true;
  }

  /** One event for all dead letters of an endpoint. It opens a window in which the endpoint gets no other one. */
  async #reportDeaths(
    round: OperationalRound,
    subscribers: FindSubscribers,
    noticesAbout: FindNotices,
    noted: ReadonlyMap<Uuid, NotedEndpoint>,
    deaths: ReadonlyMap<Uuid, readonly OperationalNote[]>,
  ): Promise<{ events: OperationalEvent[]; notices: PendingNotice[] }> {
    const reported: Uuid[] = [];
    const events: OperationalEvent[] = [];
    const notices: PendingNotice[] = [];
    for (const [id, notes] of deaths) {
      const endpoint = noted.get(id)!;
      const payload = deathsPayload(notes, endpoint, this.#options.publicUrl);
      const ofEndpoint = this.#toEvents(subscribers, notes.at(-1)!, endpoint, payload);
      const noticesOfEndpoint = noticesAbout(operationalTypes.deliveryDead, endpoint, payload);
      if (ofEndpoint.length > 0 || noticesOfEndpoint.length > 0) reported.push(id);
      events.push(...ofEndpoint);
      notices.push(...noticesOfEndpoint);
    }
    if (reported.length > 0) await round.setStates(operationalTypes.deliveryDead, reported);
    return { events, notices };
  }

  async #publishThresholds(): Promise<void> {
    const { store, clock, endpoints, operatorTenant } = this.#options;
    const subscribers = collectSubscribers(endpoints.operational());
    const operators = (type: OperationalType) => subscribers(operatorTenant, type).filter(isOperator);
    const noticesAbout = collectNotifiers(endpoints.operational());
    const types = [
      operationalTypes.deadLettersThreshold,
      operationalTypes.queueAge,
      operationalTypes.archiveFailed,
    ].filter((type) => operators(type).length > 0 || noticesAbout.hasOperator(type));
    if (types.length === 0) return;
    await store.runRound(async (round) => {
      const crossed = await checkThresholds(round, types, this.#options);
      await round.addNotices(crossed.flatMap(({ type, data }) => noticesAbout(type, null, data)));
      await round.publish(
        crossed.flatMap(({ type, data }) => {
          const endpointIds = operators(type).map(({ id }) => id);
          return endpointIds.length === 0
            ? []
            : { id: newEventId(clock.now()), tenant: operatorTenant, type, data, endpointIds };
        }),
      );
      return true;
    });
  }

  /**
   * One event for the operator and one for the endpoint's tenant, if any of their endpoints subscribes. Only endpoints with
   * `operator` get events about another tenant.
   */
  #toEvents(
    subscribersOf: FindSubscribers,
    note: OperationalNote,
    about: NotedEndpoint,
    data: OperationalEvent['data'],
  ): OperationalEvent[] {
    const { clock, operatorTenant } = this.#options;
    const type = note.kind;
    return [...new Set([about.tenant, operatorTenant])].flatMap((tenant) => {
      const subscribers = subscribersOf(tenant, type);
      const allowed = tenant === about.tenant ? subscribers : subscribers.filter(isOperator);
      const receivers = SENT_TO_ENDPOINT_ITSELF.has(type)
        ? allowed
        : allowed.filter(({ id }) => id !== about.id);
      if (receivers.length === 0) return [];
      return {
        // The same note always makes the same id, so a note that is written twice is one event.
        id:
          note.id === null
            ? newEventId(clock.now())
            : eventIdFromForeignId(`${note.id} ${tenant}`, timeOfId(note.id)),
        tenant,
        type,
        data,
        endpointIds: receivers.length === subscribers.length ? null : receivers.map(({ id }) => id),
      };
    });
  }
}

const isOperator = ({ operator }: Endpoint): boolean => operator;

/**
 * Keeps track of which circuits were reported open, and which endpoints were reported limited. An endpoint that is enabled
 * again starts with a closed circuit and its configured limits.
 */
async function isWorthReporting(
  round: OperationalRound,
  { kind, endpointId }: OperationalNote,
): Promise<boolean> {
  const { circuitOpened, circuitClosed, endpointLimited, endpointUnlimited, endpointEnabled } =
    operationalTypes;
  if (kind === circuitOpened) await round.setStates(circuitOpened, [endpointId]);
  if (kind === circuitClosed) return round.clearState(circuitOpened, endpointId);
  if (kind === endpointLimited) await round.setStates(endpointLimited, [endpointId]);
  if (kind === endpointUnlimited) return round.clearState(endpointLimited, endpointId);
  if (kind === endpointEnabled) await round.clearState(circuitOpened, endpointId);
  if (kind === endpointEnabled) await round.clearState(endpointLimited, endpointId);
  return true;
}
