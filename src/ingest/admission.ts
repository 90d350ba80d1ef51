/** Decides whether an event may enter the accept stage: enough memory, within the tenant's rate, valid targets. */
import type { Clock } from '../domain/clock.ts';
import type { NewEvent } from '../domain/event.ts';
import { idPrefixes, publicId } from '../domain/ids.ts';
import { invalidField, Problem } from '../domain/problem.ts';
import type { EndpointDirectory } from '../ports/endpoint-directory.ts';
import type { RateLimits } from '../ports/rate-limits.ts';
import type { LoadShedder } from './load-shedder.ts';
import type { Subscriptions } from './subscriptions.ts';

export interface AdmissionOptions {
  readonly clock: Clock;
  readonly endpoints: Pick<EndpointDirectory, 'refresh'>;
  readonly subscriptions: Pick<Subscriptions, 'get'>;
  readonly tenantRates: RateLimits;
  readonly shedder: Pick<LoadShedder, 'admit' | 'retryAfterSeconds'>;
  /** How many events, and how many bytes of payload, may wait to be stored. */
  readonly queueEvents: number;
  readonly queueBytes: number;
}

/** How much waits to be stored. */
export interface QueueLevel {
  readonly events: number;
  readonly bytes: number;
  /** The part of it that belongs to the tenant of the event. */
  readonly eventsOfTenant: number;
  readonly bytesOfTenant: number;
}

export class Admission {
  readonly #options: AdmissionOptions;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** Throws a `Problem` if too much waits already, if the process or the database is too slow, or if the tenant publishes faster than its limit. */
  checkLoad({ tenant, data }: NewEvent, queue: QueueLevel): void {
    const { queueEvents, queueBytes, tenantRates, shedder } = this.#options;
    const isFull = queue.events >= queueEvents || queue.bytes + data.length > queueBytes;
    // A tenant may fill half of the queue, so that others always find room. An event of any size finds room in an empty queue.
    const isTenantFull =
      queue.eventsOfTenant >= queueEvents / 2 ||
      (queue.eventsOfTenant > 0 && queue.bytesOfTenant + data.length > queueBytes / 2);
    if (isFull || isTenantFull) {
      throw new Problem(
        'overloaded',
        'Too many events are waiting to be stored. Try again after the time in Retry-After.',
        { retryAfterSeconds: 1 },
      );
    }
    // Before the shedder: events over the tenant's own limit must not count when it divides its share among tenants.
    const waitSeconds = tenantRates.take(tenant);
    if (waitSeconds > 0) {
      throw new Problem('rate_limited', `The tenant "${tenant}" publishes faster than its limit.`, {
        retryAfterSeconds: Math.ceil(waitSeconds),
      });
    }
    if (!shedder.admit(tenant)) {
      throw new Problem(
        'overloaded',
        'The event was not stored: Posthorn or its database is overloaded. Send it again after the time in Retry-After.',
        { retryAfterSeconds: shedder.retryAfterSeconds },
      );
    }
  }

  /**
   * Throws a `Problem` if an endpoint that the event names does not exist or cannot take it. Returns null if the
   * check needs no read: then the events of a batch keep their order.
   */
  checkTargets(event: NewEvent): Promise<void> | null {
    return this.#findTargetProblem(event) === null ? null : this.#checkTargetsAgain(event);
  }

  /** Another process may have created or changed the endpoint a moment ago. */
  async #checkTargetsAgain(event: NewEvent): Promise<void> {
    await this.#options.endpoints.refresh();
    const problem = this.#findTargetProblem(event);
    if (problem !== null) throw problem;
  }

  #findTargetProblem({ tenant, endpointIds, deliverAt }: NewEvent): Problem | null {
    const isScheduled = deliverAt !== null && deliverAt > this.#options.clock.now();
    for (const [index, id] of endpointIds!.entries()) {
      const endpoint = this.#options.subscriptions.get(tenant, id);
      if (endpoint === undefined)
        return invalidField(`endpoint_ids[${index}]`, 'there is no such enabled endpoint of this tenant');
      if (isScheduled && endpoint.ordering === 'fifo')
        return invalidField(
          'deliver_at',
          `endpoint_ids[${index}] (${publicId(idPrefixes.endpoint, id)}) is a FIFO endpoint, which sends in the order of acceptance: leave out deliver_at or that endpoint`,
        );
    }
    return null;
  }
}
