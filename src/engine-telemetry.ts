/** Metrics, log lines and live tail messages of the engine. Disables endpoints that answered 410. */
import type { AppMetrics } from './app-metrics.ts';
import type { EngineObserver } from './create-engine.ts';
import type { HistoryChange, Lane, LaneItem } from './dispatch/index.ts';
import type { Clock } from './domain/clock.ts';
import type { Endpoint } from './domain/endpoint.ts';
import type { EventContent } from './domain/event.ts';
import { publicId } from './domain/ids.ts';
import type { AttemptOutcome, Verdict } from './domain/outcome.ts';
import type { EndpointDirectory } from './ports/endpoint-directory.ts';
import type { TakenShard } from './ports/ownership-store.ts';
import { inTransaction, type Pool } from './postgres/database.ts';
import { disableEndpoint } from './postgres/queries/endpoints.ts';
import { logAttempt } from './telemetry/attempt-line.ts';
import type { LiveTail } from './telemetry/live-tail/index.ts';
import type { Log } from './telemetry/log.ts';

export interface EngineTelemetryOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: AppMetrics | null;
  readonly tail: LiveTail;
  readonly pool: Pool;
  readonly endpoints: Pick<EndpointDirectory, 'refresh'>;
  readonly onProblem: (what: string, error: unknown) => void;
}

/** A shortage fails hundreds of requests at once, so log one line per interval, with their number. */
const SHORTAGE_LOG_MS = 10_000;

const HISTORY_CHANGES: Readonly<Record<HistoryChange, string>> = {
  restored:
    'the database was restored to an earlier time, or a standby that was behind took its place: later events and changes are lost, and later deliveries are sent again with the same webhook-id; reading all endpoints and deliveries again',
  rewound:
    'the database went back to an earlier state (a restore, a failover or a crash): reading all deliveries again; those that it had recorded later are sent again with the same webhook-id',
  failover:
    'the timeline of the database changed (failover or recovery): if its standby was asynchronous, the last events before it may be lost; reading all deliveries again',
};

export class EngineTelemetry implements EngineObserver {
  readonly #options: EngineTelemetryOptions;
  #shortageLoggedAt = Number.NEGATIVE_INFINITY;
  #suppressedShortages = 0;

  constructor(options: EngineTelemetryOptions) {
    this.#options = options;
  }

  onAnswered(
    lane: Lane,
    { delivery }: LaneItem,
    outcome: AttemptOutcome,
    verdict: Verdict,
    event: EventContent,
  ): void {
    const { metrics } = this.#options;
    metrics?.attempts.onAnswered(event.type, delivery, outcome, verdict);
    if (outcome.error?.class === 'internal') metrics?.countProblem();
    logAttempt(this.#options.log, lane.endpoint, delivery, outcome, verdict);
  }

  onSettling(verdict: Verdict): void {
    this.#options.metrics?.attempts.onSettling(verdict);
  }

  onShortage(code: string): void {
    const { metrics, clock, log } = this.#options;
    metrics?.countShortage(code);
    this.#suppressedShortages += 1;
    const now = clock.monotonic();
    if (now - this.#shortageLoggedAt < SHORTAGE_LOG_MS) return;
    const fields = { code, requests: this.#suppressedShortages };
    this.#shortageLoggedAt = now;
    this.#suppressedShortages = 0;
    log.error(fields, 'this machine lacks resources for requests; deliveries wait');
  }

  onCircuitChanged({ id, endpoint, breaker }: Lane): void {
    const { metrics, tail, log } = this.#options;
    const { circuit } = breaker.record;
    metrics?.onCircuitChanged(breaker.allowsTraffic);
    tail.circuitChanged(endpoint, circuit);
    log.info({ endpoint_id: publicId('ep', id), circuit }, 'circuit changed');
  }

  onLimitsChanged({ id, endpoint, adaptive }: Lane): void {
    const { record } = adaptive;
    this.#options.log.info(
      {
        endpoint_id: publicId('ep', id),
        in_flight_limit: record?.inFlightLimit ?? endpoint.maxInFlight,
        effective_timeout_ms: record?.timeoutMs ?? endpoint.timeoutMs,
        reason: record?.reason ?? null,
      },
      'adaptive limits changed',
    );
  }

  onEndpointGone(endpoint: Endpoint, startedAt: number): void {
    void this.#disable(endpoint, startedAt).catch((error) =>
      this.#options.onProblem('disable an endpoint that is gone', error),
    );
  }

  onEndpointsConfirmed(): void {
    this.#options.metrics?.onEndpointsConfirmed(this.#options.clock.monotonic());
  }

  onStoreReplaced(change: HistoryChange): void {
    this.#options.log.warn({ change }, HISTORY_CHANGES[change]);
  }

  onShardsTaken(shards: readonly TakenShard[]): void {
    this.#options.log.debug({ shards: shards.length }, 'took shards');
  }

  onShardsLost(shards: readonly number[]): void {
    this.#options.log.warn({ shards: shards.length }, 'lost shards');
  }

  onDeadWorkersRemoved(workers: readonly string[], shards: number): void {
    this.#options.log.warn({ workers, shards }, 'took over from workers that died');
  }

  async #disable({ id, url }: Endpoint, startedAt: number): Promise<void> {
    const { pool, metrics, log, endpoints } = this.#options;
    const isDisabled = await inTransaction(pool, (client) =>
      disableEndpoint(
        client,
        id,
        { reason: 'gone', rule: 'The endpoint answered 410.' },
        { url, at: startedAt },
      ),
    );
    if (isDisabled) {
      metrics?.onEndpointDisabled('gone');
      log.warn({ endpoint_id: publicId('ep', id) }, 'endpoint answered 410 and was disabled');
    }
    await endpoints.refresh();
  }
}
