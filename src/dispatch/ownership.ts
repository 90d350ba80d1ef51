/**
 * Which shards are ours, and can we prove it right now?
 *
 *   register ──▶ renew every heartbeat ──▶ take free shards up to our share, give up what is beyond it
 *                  │ no answer in time       the proof grows old by itself: nothing is started
 *                  │ connection lost         proof gone at once; connect and renew again
 *                  └ declared dead           everything is lost; register anew under another id
 *
 * The proof is a time on the monotonic clock, taken before the renewal was sent. It is checked inline before every
 * request that leaves, never by a timer: a process that was stopped for a while finds it expired when it wakes.
 */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import { newId } from '../domain/ids.ts';
import type { Service } from '../domain/lifecycle.ts';
import type { TakenShard } from '../ports/ownership-store.ts';
import type { Client, Pool } from '../postgres/database.ts';
import {
  buryDeadWorkers,
  registerWorker,
  releaseShards,
  renew,
  surplusShards,
  takeShards,
  unregisterWorker,
} from '../postgres/queries/ownership.ts';

/** Raised when workers of two versions could misread each other's rows. */
export const WIRE_VERSION = 1;
const MAX_DATABASE_SILENCE_MS = 5000;
/** Half of it is the most by which the database's time can be misjudged: no more than the clock takes for noise. */
const PROMPT_ANSWER_MS = 200;

export interface OwnershipEvents {
  /** Shards that are ours from now on. */
  taken(shards: readonly TakenShard[]): void;
  /** Shards that are not ours any more: forget them. */
  lost(shards: readonly number[]): void;
  /** Shards to give up: call `release` for them once nothing of them is on the wire. */
  giveUp(shards: readonly number[]): void;
  /** After each renewal: what the database says about itself. */
  renewed(facts: { databaseNow: number; endpointVersion: number; lastSeq: number }): void;
  notified(channel: string, payload: string): void;
  /** The control connection is new: notifications may have been missed. */
  connected(): void;
  problem(what: string, error: unknown): void;
  buried(workers: readonly string[], shards: number): void;
}

export interface OwnershipOptions {
  readonly pool: Pool;
  readonly name: string;
  readonly clock: Clock;
  readonly heartbeatMs: number;
  readonly proofMs: number;
  readonly deadAfterMs: number;
  readonly crashWindowMs: number;
  readonly channels: readonly string[];
  /** False: this process only needs the facts and the notifications, it sends nothing. */
  readonly takesShards: boolean;
  readonly events: OwnershipEvents;
}

export class Ownership implements Service {
  readonly name = 'ownership';
  readonly #options: OwnershipOptions;
  readonly #epochs = new Map<number, number>();
  readonly #givingUp = new Set<number>();
  #workerId: Uuid;
  #client: Client | null = null;
  #provenUntil = Number.NEGATIVE_INFINITY;
  #lastProofAt = Number.NEGATIVE_INFINITY;
  #cancelTimer: (() => void) | null = null;
  #beating: Promise<void> | null = null;
  #knowsDatabaseTime = false;
  #stopping = false;
  #stopped = false;

  constructor(options: OwnershipOptions) {
    this.#options = options;
    this.#workerId = newId(options.clock.now());
  }

  get workerId(): Uuid {
    return this.#workerId;
  }

  get ownedShards(): number {
    return this.#epochs.size;
  }

  /** Those that are ours for certain, and to stay so. */
  get lastingShards(): number[] {
    if (!this.proven) return [];
    return [...this.#epochs.keys()].filter((shard) => !this.#givingUp.has(shard));
  }

  get connected(): boolean {
    return this.#client !== null;
  }

  owns(shard: number): boolean {
    return this.#epochs.has(shard);
  }

  epochOf(shard: number): number | undefined {
    return this.#epochs.get(shard);
  }

  /** The question before every request: is the shard ours, is that proven, and is it to stay ours? */
  mayStart(shard: number): boolean {
    return (
      this.#epochs.has(shard) &&
      !this.#givingUp.has(shard) &&
      this.#options.clock.monotonic() < this.#provenUntil
    );
  }

  get proven(): boolean {
    return this.#options.clock.monotonic() < this.#provenUntil;
  }

  /** How long there has been no new proof; Infinity: never was one. A moment without one is a hiccup, not an outage. */
  get silentMs(): number {
    return this.#options.clock.monotonic() - this.#lastProofAt;
  }

  async start(): Promise<void> {
    if (this.#cancelTimer !== null || this.#stopped) return;
    await this.#beat();
  }

  /** Gives up everything still held, and leaves. The dispatcher has drained its lanes before. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    await this.#beating;
    const client = this.#client;
    this.#client = null;
    this.#provenUntil = Number.NEGATIVE_INFINITY;
    if (client === null) return;
    // Best effort: if the database is away, the others find out by our silence.
    await unregisterWorker(client, this.#workerId).catch(() => {});
    await client.query("select pg_notify('posthorn_shards', '')").catch(() => {});
    client.release(true);
  }

  /** From now on nothing may be started and no shard is taken. Returns the ones that are held, to be released. */
  async beginStop(): Promise<number[]> {
    this.#stopping = true;
    await this.#beating;
    // Says so in the database, so that the others count on a larger share.
    if (this.#client !== null && !this.#stopped) await this.#beat();
    const held = [...this.#epochs.keys()];
    for (const shard of held) this.#givingUp.add(shard);
    return held;
  }

  /** Nothing of these is on the wire any more: anybody may have them. */
  async release(shards: readonly number[]): Promise<void> {
    const ours = shards.filter((shard) => this.#epochs.has(shard));
    for (const shard of ours) {
      this.#epochs.delete(shard);
      this.#givingUp.delete(shard);
    }
    const client = this.#client;
    if (ours.length === 0 || client === null) return;
    try {
      await releaseShards(client, this.#workerId, ours);
      await client.query("select pg_notify('posthorn_shards', '')");
    } catch (error) {
      this.#options.events.problem('release shards', error);
    }
  }

  /** Somebody gave up shards or left: look now rather than at the next heartbeat. */
  hurry(): void {
    if (this.#beating !== null || this.#stopped || this.#stopping) return;
    this.#cancelTimer?.();
    void this.#beat();
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#cancelTimer?.();
    this.#cancelTimer = this.#options.clock.after(this.#options.heartbeatMs, () => void this.#beat());
  }

  #beat(): Promise<void> {
    this.#beating ??= this.#beatOnce().finally(() => {
      this.#beating = null;
      this.#schedule();
    });
    return this.#beating;
  }

  async #beatOnce(): Promise<void> {
    const { events, clock, proofMs } = this.#options;
    try {
      const client = this.#client ?? (await this.#connect());
      const sentAt = clock.monotonic();
      const renewal = await renew(client, this.#workerId, this.#stopping || !this.#options.takesShards);
      if (renewal === null) {
        await this.#declaredDead();
        return;
      }
      const held = new Map(renewal.shards.map(({ shard, epoch }) => [shard, epoch]));
      this.#dropShards(
        [...this.#epochs].filter(([shard, epoch]) => held.get(shard) !== epoch).map(([shard]) => shard),
      );
      this.#provenUntil = sentAt + proofMs;
      this.#lastProofAt = sentAt;
      events.renewed({ ...renewal, databaseNow: this.#databaseNow(renewal.now, sentAt) });
      // Taken by a statement whose answer was lost, or given up by one that never arrived: ours on paper, worked by nobody.
      const forgotten = [...held.keys()].filter((shard) => !this.#epochs.has(shard));
      if (forgotten.length > 0) await releaseShards(client, this.#workerId, forgotten);
      if (this.#options.takesShards) await this.#balance(client);
    } catch (error) {
      events.problem('renew the proof of ownership', error);
      this.#disconnect();
    }
  }

  /**
   * The time at the database as of now: half of the way's duration later than it said. An answer that was long on its way
   * (a busy machine, a process that was stopped meanwhile) says nothing: taken at its word, the clock would go back.
   */
  #databaseNow(said: number, sentAt: number): number {
    const { clock } = this.#options;
    const tookMs = clock.monotonic() - sentAt;
    if (this.#knowsDatabaseTime && tookMs > PROMPT_ANSWER_MS) return clock.now();
    this.#knowsDatabaseTime = true;
    return said + tookMs / 2;
  }

  async #balance(client: Client): Promise<void> {
    const { events } = this.#options;
    const buried = await buryDeadWorkers(client, this.#workerId, {
      leaseMs: this.#options.proofMs,
      deadAfterMs: this.#options.deadAfterMs,
    });
    if (buried.length > 0) events.buried([...new Set(buried.map(({ worker }) => worker))], buried.length);
    if (this.#stopping) return;
    const taken = await takeShards(client, this.#workerId, this.#options.crashWindowMs);
    for (const { shard, epoch } of taken) this.#epochs.set(shard, epoch);
    if (taken.length > 0) events.taken(taken);
    const surplus = (await surplusShards(client, this.#workerId)) - this.#givingUp.size;
    if (surplus > 0)
      this.#giveUp([...this.#epochs.keys()].filter((shard) => !this.#givingUp.has(shard)).slice(-surplus));
  }

  #giveUp(shards: readonly number[]): void {
    for (const shard of shards) this.#givingUp.add(shard);
    if (shards.length > 0) this.#options.events.giveUp(shards);
  }

  #dropShards(shards: readonly number[]): void {
    if (shards.length === 0) return;
    for (const shard of shards) {
      this.#epochs.delete(shard);
      this.#givingUp.delete(shard);
    }
    this.#options.events.lost(shards);
  }

  /** Others thought us dead (we were stopped, or cut off for too long). Begin again as somebody new. */
  async #declaredDead(): Promise<void> {
    this.#provenUntil = Number.NEGATIVE_INFINITY;
    this.#dropShards([...this.#epochs.keys()]);
    this.#disconnect();
    this.#workerId = newId(this.#options.clock.now());
    this.#options.events.problem('keep its shards: other workers took them over', null);
  }

  async #connect(): Promise<Client> {
    const { pool, name, channels, events } = this.#options;
    const client = await pool.connect();
    try {
      client.on('notification', ({ channel, payload }) => events.notified(channel, payload ?? ''));
      client.on('error', (error) => {
        if (this.#client === client) {
          events.problem('keep the control connection', error);
          this.#disconnect();
        }
      });
      await client.query(`set statement_timeout = ${MAX_DATABASE_SILENCE_MS}`);
      for (const channel of channels) await client.query(`listen ${channel}`);
      const lockKey = randomBytes(8).readBigInt64BE().toString();
      const { takesShards } = this.#options;
      await registerWorker(client, {
        id: this.#workerId,
        name,
        lockKey,
        wireVersion: WIRE_VERSION,
        takesShards,
      });
    } catch (error) {
      client.release(true);
      throw error;
    }
    this.#client = client;
    events.connected();
    return client;
  }

  /** Without the connection nothing is proven: the session lock is gone, and others may act on that. */
  #disconnect(): void {
    this.#provenUntil = Number.NEGATIVE_INFINITY;
    const client = this.#client;
    this.#client = null;
    client?.removeAllListeners('notification');
    client?.release(true);
  }
}
