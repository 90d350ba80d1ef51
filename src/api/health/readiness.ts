/**
 * Tells whether a load balancer should send requests here: events can be accepted, and workers of the deployment
 * deliver them. A worker whose lease is valid may still be unable to read deliveries or to record results; it reports that
 * itself.
 *
 * The shards of a dead worker have no owner for a moment, which must not remove every server from the balancer. So a
 * server is not ready only if a shard has had no live owner for longer than a take-over takes, or if no shard ever had
 * one.
 */
import type { Clock } from '../../domain/clock.ts';
import { SHARDS } from '../../domain/endpoint.ts';
import type { ReadinessFacts } from '../../postgres/queries/readiness.ts';

export interface ReadinessOptions {
  readonly clock: Clock;
  readonly read: () => Promise<ReadinessFacts>;
  /** How long it takes at most until the shards of a dead worker have another owner. */
  readonly takeOverMs: number;
  /** False: an API server is ready without workers. Events wait for the next worker. */
  readonly needsWorkers: boolean;
}

export const DATABASE_AWAY = 'The database does not answer.';

export class Readiness {
  readonly #options: ReadinessOptions;
  /** Monotonic time since which some shard has had no live owner. Null: all had one at the last check. */
  #incompleteSince: number | null = null;
  #wasComplete = false;

  constructor(options: ReadinessOptions) {
    this.#options = options;
  }

  /** Returns what is missing; null if the server is ready. */
  async findMissing(): Promise<string | null> {
    let facts: ReadinessFacts;
    try {
      facts = await this.#options.read();
    } catch {
      return DATABASE_AWAY;
    }
    if (facts.isReadOnly) return 'The database takes no writes: it is a standby or read-only.';
    if (facts.isStandbyAway)
      return 'Commits wait for a synchronous standby that does not answer (synchronous_standby_names).';
    if (!facts.hasPartition) return 'There is no partition for events of the present time.';
    if (!this.#options.needsWorkers) return null;
    return this.#describeMissingOwners(facts.ownedShards) ?? describeStall(facts.stalledShards);
  }

  #describeMissingOwners(owned: number): string | null {
    const now = this.#options.clock.monotonic();
    if (owned === SHARDS) {
      this.#wasComplete = true;
      this.#incompleteSince = null;
      return null;
    }
    this.#incompleteSince ??= now;
    const isTakingOver = now - this.#incompleteSince <= this.#options.takeOverMs;
    if (owned === 0)
      return isTakingOver && this.#wasComplete
        ? null
        : 'No living worker owns a shard: nothing is delivered.';
    return isTakingOver ? null : `${SHARDS - owned} of ${SHARDS} shards have no living worker.`;
  }
}

const describeStall = (stalled: number): string | null =>
  stalled === 0
    ? null
    : `The workers of ${stalled} of ${SHARDS} shards cannot read deliveries or record results.`;
