/**
 * Tells operators, and tenants that ask for it, what happens to endpoints and deliveries: by events like any other,
 * delivered by the same engine.
 *
 *   something happens ──▶ note ──▶ one event for each tenant that wants it ──▶ outbox ──▶ stored, delivered, retried …
 *                     same commit      same commit that deletes the note         exactly once
 *
 * One process at a time does it; if it is killed, the notes are there for the next. Why it cannot feed itself: deaths of
 * operational events are not noted, nor that a circuit opened because of one; a circuit closes as often as it was told
 * to have opened; switching an endpoint off is done once, and on again by people; the two levels do not count
 * operational events. So every event goes back to something that happened to an event of a producer, or to a person.
 */
import type { Clock } from '../domain/clock.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import { matchesType, RESERVED_TYPE_PREFIX } from '../domain/event.ts';
import { eventIdOfForeign, newEventId, timeOfId, type Uuid } from '../domain/ids.ts';
import { type OperationalType, operationalTypes } from '../domain/operational.ts';
import { type Client, inTransaction, type Pool } from '../postgres/database.ts';
import type { EndpointCache } from '../postgres/endpoint-cache.ts';
import {
  aloneInTelling,
  clearState,
  currentVersion,
  hasNotes,
  type Note,
  type NotedEndpoint,
  notedEndpoints,
  type OperationalEvent,
  publishOperational,
  setState,
  takeNotes,
} from '../postgres/queries/operational-events.ts';
import { checkLevels, type LevelOptions } from './operational-levels.ts';
import { deathsPayload, endpointPayload } from './operational-payloads.ts';
import { Recurring } from './recurring.ts';

export interface OperationalEventsOptions extends LevelOptions {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly endpoints: EndpointCache;
  readonly everyMs: number;
  readonly levelsEveryMs: number;
  /** Whose endpoints are told about everybody's. */
  readonly operatorTenant: string;
  /** One event about the dead letters of an endpoint in so much time. */
  readonly deadWindowMs: number;
  readonly publicUrl: string;
  readonly problem: (what: string, error: unknown) => void;
}

const NOTES_PER_ROUND = 5_000;
/** If endpoints change all the time, the next round may be luckier. */
const MOST_LOOKS = 5;
/** An endpoint that cannot be reached is not where to say so. Its dead letters it may hear of: others may arrive. */
const ABOUT_ITSELF: ReadonlySet<OperationalType> = new Set([operationalTypes.deliveryDead]);

/** Rolls back: the notes are taken again. */
class EndpointsChanged extends Error {}

export class OperationalEvents extends Recurring {
  readonly #options: OperationalEventsOptions;
  #levelsCheckedAt = Number.NEGATIVE_INFINITY;

  constructor(options: OperationalEventsOptions) {
    super(options.clock, options.everyMs);
    this.#options = options;
  }

  protected override async work(): Promise<void> {
    const { pool, clock, levelsEveryMs, problem } = this.#options;
    try {
      if (await hasNotes(pool)) await this.#tellWhenCurrent();
      if (clock.monotonic() - this.#levelsCheckedAt < levelsEveryMs) return;
      this.#levelsCheckedAt = clock.monotonic();
      await this.#tellLevels();
    } catch (error) {
      problem('tell what happened (operational events)', error);
    }
  }

  /**
   * Whoever subscribed before something happened is told of it: so the endpoints in memory must be at least as new as
   * the notes. They are read outside of the transaction, which has a connection already and must not wait for another.
   */
  async #tellWhenCurrent(): Promise<void> {
    for (let looks = 0; looks < MOST_LOOKS && !this.stopped; looks += 1) {
      await this.#options.endpoints.refresh();
      try {
        return await this.#tellNotes();
      } catch (error) {
        if (!(error instanceof EndpointsChanged)) throw error;
      }
    }
  }

  async #tellNotes(): Promise<void> {
    const { pool, endpoints, deadWindowMs, publicUrl } = this.#options;
    await inTransaction(pool, async (client) => {
      if (!(await aloneInTelling(client))) return;
      const notes = await takeNotes(client, deadWindowMs, NOTES_PER_ROUND);
      if (notes.length === 0) return;
      if ((await currentVersion(client)) !== endpoints.version) throw new EndpointsChanged();
      const subscribers = subscribersIn(endpoints.all());
      const told: OperationalEvent[] = [];
      const about = await notedEndpoints(client, [...new Set(notes.map(({ endpoint_id }) => endpoint_id))]);
      const deaths = new Map<Uuid, Note[]>();
      for (const note of notes) {
        const endpoint = about.get(note.endpoint_id);
        if (endpoint === undefined) continue;
        if (note.kind === operationalTypes.deliveryDead) {
          const earlier = deaths.get(endpoint.id);
          if (earlier === undefined) deaths.set(endpoint.id, [note]);
          else earlier.push(note);
        } else if (await isNews(client, note)) {
          told.push(
            ...this.#eventsFor(subscribers, note, endpoint, endpointPayload(note, endpoint, publicUrl)),
          );
        }
      }
      const windows: Uuid[] = [];
      for (const [id, ofEndpoint] of deaths) {
        const endpoint = about.get(id)!;
        const payload = deathsPayload(ofEndpoint, endpoint, publicUrl);
        const events = this.#eventsFor(subscribers, ofEndpoint.at(-1)!, endpoint, payload);
        if (events.length > 0) windows.push(id);
        told.push(...events);
      }
      if (windows.length > 0) await setState(client, operationalTypes.deliveryDead, windows);
      await publishOperational(client, told);
    });
  }

  async #tellLevels(): Promise<void> {
    const { pool, clock, endpoints, operatorTenant } = this.#options;
    const subscribers = subscribersIn(endpoints.all());
    const wanted = (type: OperationalType) => subscribers(operatorTenant, type).length > 0;
    const types = [operationalTypes.deadLettersThreshold, operationalTypes.queueAge].filter(wanted);
    if (types.length === 0) return;
    await inTransaction(pool, async (client) => {
      if (!(await aloneInTelling(client))) return;
      const passed = await checkLevels(client, types, this.#options);
      await publishOperational(
        client,
        passed.map(({ type, data }) => ({
          id: newEventId(clock.now()),
          tenant: operatorTenant,
          type,
          data,
          endpointIds: null,
        })),
      );
    });
  }

  /** For the operator and for the owner of the endpoint; none for who would not hear of it. */
  #eventsFor(
    subscribersOf: Subscribers,
    note: Note,
    about: NotedEndpoint,
    data: OperationalEvent['data'],
  ): OperationalEvent[] {
    const { clock, operatorTenant } = this.#options;
    const type = note.kind;
    return [...new Set([about.tenant, operatorTenant])].flatMap((tenant) => {
      const subscribers = subscribersOf(tenant, type);
      const others = ABOUT_ITSELF.has(type) ? subscribers : subscribers.filter(({ id }) => id !== about.id);
      if (others.length === 0) return [];
      return {
        id:
          note.id === null
            ? newEventId(clock.now())
            : eventIdOfForeign(`${note.id} ${tenant}`, timeOfId(note.id)),
        tenant,
        type,
        data,
        endpointIds: others.length === subscribers.length ? null : others.map(({ id }) => id),
      };
    });
  }
}

type Subscribers = (tenant: string, type: OperationalType) => readonly Endpoint[];

/** Those that name operational events at all are few: looked for once, however much there is to tell. */
function subscribersIn(endpoints: Iterable<Endpoint>): Subscribers {
  const byTenant = new Map<string, { endpoint: Endpoint; patterns: string[] }[]>();
  for (const endpoint of endpoints) {
    const patterns = endpoint.events.filter((pattern) => pattern.startsWith(RESERVED_TYPE_PREFIX));
    // They are in no channel: an endpoint that asks for some gets none of them.
    if (patterns.length === 0 || !endpoint.enabled || endpoint.deleted || endpoint.channels.length > 0)
      continue;
    const others = byTenant.get(endpoint.tenant);
    if (others === undefined) byTenant.set(endpoint.tenant, [{ endpoint, patterns }]);
    else others.push({ endpoint, patterns });
  }
  return (tenant, type) =>
    (byTenant.get(tenant) ?? []).flatMap(({ endpoint, patterns }) =>
      patterns.some((pattern) => matchesType(pattern, type)) ? [endpoint] : [],
    );
}

/** Remembers which circuits were told to be open. Switched on again, an endpoint begins with a closed one. */
async function isNews(client: Client, { kind, endpoint_id }: Note): Promise<boolean> {
  const { circuitOpened, circuitClosed, endpointEnabled } = operationalTypes;
  if (kind === circuitOpened) await setState(client, circuitOpened, [endpoint_id]);
  if (kind === circuitClosed) return clearState(client, circuitOpened, endpoint_id);
  if (kind === endpointEnabled) await clearState(client, circuitOpened, endpoint_id);
  return true;
}
