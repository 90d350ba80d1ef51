/** Composes the check whether this process is ready, and the watch that logs when the answer changes. */
import { DATABASE_AWAY, Readiness } from './api/health/readiness.ts';
import type { Config } from './config/index.ts';
import type { Engine } from './create-engine.ts';
import type { EventLogParts } from './create-event-log.ts';
import type { Clock } from './domain/clock.ts';
import { Progress } from './domain/progress.ts';
import type { Store } from './open-store.ts';
import type { EventStore } from './ports/event-store.ts';
import { readReadiness, reportStall } from './postgres/queries/readiness.ts';
import { ReadinessWatch } from './readiness-watch.ts';
import type { Log } from './telemetry/log.ts';

export interface ReadinessParts {
  readonly config: Config;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly engine: Engine;
  readonly accepts: Progress;
  readonly eventLog: EventLogParts['eventLog'];
  readonly isStopping: () => boolean;
  readonly onProblem: (what: string, error: unknown) => void;
}

/** Returns the event store, and whether events can be written to it. */
export function watchAccepts(
  eventStore: EventStore,
  clock: Clock,
): { eventStore: EventStore; accepts: Progress } {
  const accepts = new Progress(clock, { needsSubjects: 2 });
  return {
    accepts,
    eventStore: {
      ...eventStore,
      append: (events, options) =>
        accepts.watch(
          events.map(({ tenant }) => tenant),
          () => eventStore.append(events, options),
        ),
    },
  };
}

/** Returns a function that says why the process is not ready. Null: it is ready. */
export function createReadinessCheck(parts: ReadinessParts): () => Promise<string | null> {
  const { config, store, clock, engine, accepts, eventLog, isStopping } = parts;
  const readiness = new Readiness({
    clock,
    read: () => readReadiness(store.database.pool('lookup'), config.deadAfterMs),
    takeOverMs: config.deadAfterMs,
    needsWorkers: config.readyNeedsWorkers,
  });
  const outage = new DatabaseOutage(clock, config.acceptWithoutDatabaseMs);
  return async () => {
    if (isStopping()) return 'This server is stopping.';
    if (eventLog !== null && eventLog.log.partitions === null) return 'Kafka does not answer.';
    if (eventLog !== null && eventLog.log.stalledForMs > stalledAfterMs(config))
      return 'Kafka does not confirm new events.';
    const missing = await readiness.findMissing();
    // A server that writes to Kafka can accept events while the database is away.
    if (eventLog !== null && config.role !== 'worker' && outage.isTolerable(missing)) return null;
    if (missing !== null) return missing;
    if (config.role !== 'api' && engine.ownership.msSinceRenewal > config.deadAfterMs)
      return 'This worker could not renew the lease on its shards.';
    if (accepts.stalledForMs > stalledAfterMs(config)) return 'This server could not store new events.';
    return null;
  };
}

export function createReadinessWatch(
  { config, store, clock, log, engine, isStopping, onProblem }: ReadinessParts,
  findMissing: () => Promise<string | null>,
): ReadinessWatch {
  const pool = store.database.pool('lookup');
  return new ReadinessWatch({
    clock,
    log,
    findMissing,
    isStopping,
    worker:
      config.role === 'api'
        ? null
        : {
            id: () => engine.ownership.workerId,
            stalledForMs: () => engine.stalledForMs,
            report: (workerId, isStalled) => reportStall(pool, workerId, isStalled),
          },
    stalledAfterMs: stalledAfterMs(config),
    onProblem,
  });
}

/** Measures how long the database has not answered. */
class DatabaseOutage {
  readonly #clock: Clock;
  readonly #maxMs: number;
  #since: number | null = null;

  constructor(clock: Clock, maxMs: number) {
    this.#clock = clock;
    this.#maxMs = maxMs;
  }

  /** True if the database does not answer, and not for too long. */
  isTolerable(missing: string | null): boolean {
    if (missing !== DATABASE_AWAY) {
      this.#since = null;
      return false;
    }
    this.#since ??= this.#clock.monotonic();
    return this.#clock.monotonic() - this.#since <= this.#maxMs;
  }
}

/** Longer than a take-over, a restart of the database, or a lock that is soon released. */
const stalledAfterMs = ({ deadAfterMs }: Config): number => 2 * deadAfterMs;
