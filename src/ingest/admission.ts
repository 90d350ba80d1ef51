/** Decides whether an event may enter the accept stage: enough memory, within the tenant's rate, valid targets. */
import type { Clock } from '../domain/clock.ts';
import type { NewEvent } from '../domain/event.ts';
import { idPrefixes, publicId } from '../domain/ids.ts';
import { invalidField, Problem } from '../domain/problem.ts';
import type { EndpointDirectory } from '../ports/endpoint-directory.ts';
import type { RateLimits } from '../ports/rate-limits.ts';
import type { Subscriptions } from './subscriptions.ts';

export interface AdmissionOptions {
  readonly clock: Clock;
  readonly endpoints: Pick<EndpointDirectory, 'refresh'>;
  readonly subscriptions: Pick<Subscriptions, 'get'>;
  readonly tenantRates: RateLimits;
  /** How many events, and how many bytes of payload, may wait to be stored. */
  readonly queueEvents: number;
  readonly queueBytes: number;
}

/** How many events, and how many bytes, wait to be stored. */
export interface QueueLevel {
  readonly waitingItems: number;
  readonly waitingBytes: number;
}

export class Admission {
  readonly #options: AdmissionOptions;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** Throws a `Problem` if too much waits already, or if the tenant publishes faster than its limit. */
  checkLoad({ tenant, data }: NewEvent, queue: QueueLevel): void {
    const { queueEvents, queueBytes, tenantRates } = this.#options;
    if (queue.waitingItems >= queueEvents || queue.waitingBytes + data.length > queueBytes) {
      throw new Problem(
        'overloaded',
        'Too many events are waiting to be stored. Try again after the time in Retry-After.',
        { retryAfterSeconds: 1 },
      );
    }
    const waitSeconds = tenantRates.take(tenant);
    if (waitSeconds > 0) {
      throw new Problem('rate_limited', `The tenant "${tenant}" publishes faster than its limit.`, {
        retryAfterSeconds: Math.ceil(waitSeconds),
      });
    }
  }

  /** Throws a `Problem` if an endpoint that the event names does not exist or cannot take it. */
  async checkTargets(event: NewEvent): Promise<void> {
    if (this.#findTargetProblem(event) === null) return;
    // Another process may have created or changed the endpoint a moment ago.
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
