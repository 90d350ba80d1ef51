/**
 * A model of the database: the same statements, by their names, on maps. What the SQL says about ownership, fences and
 * order is written here a second time, in the plainest way; the real statements have their own tests on PostgreSQL.
 *
 * A statement takes effect in one instant between its sending and its answer. A fault may slow it down, or lose its
 * answer, with or without the effect.
 */
import type { BreakerRecord } from '../../src/domain/breaker.ts';
import { shardOf } from '../../src/domain/endpoint.ts';
import { timeOfId, type Uuid } from '../../src/domain/ids.ts';
import type { Pool } from '../../src/postgres/database.ts';
import type { Process, Random, VirtualTime } from './virtual-time.ts';

export interface QueueRow {
  readonly id: Uuid;
  readonly endpointId: Uuid;
  readonly seq: number;
  readonly fifo: boolean;
  readonly visibleAt: number;
  dueAt: number | null;
  startedAt: number | null;
  attempts: number;
  carefulStarts: number;
}

export interface EndedRow {
  readonly id: Uuid;
  readonly endpointId: Uuid;
  readonly status: 'delivered' | 'dead' | 'skipped';
  readonly reason: string | null;
  readonly attempts: number;
}

interface WorkerRow {
  readonly id: Uuid;
  readonly name: string;
  lock: Session;
  renewedAt: number;
  stopping: boolean;
}

interface ShardRow {
  owner: Uuid | null;
  epoch: number;
  takenAt: number;
  uncleanAt: number[];
}

type Health = BreakerRecord & { failingSince: number | null };

/** A connection of a process. Its session lock goes with it. */
export interface Session {
  readonly process: Process;
  open: boolean;
  notify: (channel: string, payload: string) => void;
}

interface Statement {
  readonly name?: string;
  readonly text: string;
  readonly values?: unknown[];
}

export interface Weather {
  /** Milliseconds that a statement takes. */
  latency: () => number;
  /** Whether its answer is lost, and with it perhaps the effect. */
  fault: () => 'none' | 'lost_request' | 'lost_answer';
  loseWake: () => boolean;
}

const list = (literal: string): string[] => {
  const inner = literal.slice(1, -1);
  return inner === '' ? [] : inner.split(',');
};

/** PostgreSQL keeps microseconds. */
const toMs = (seconds: number | string): number => Math.round(Number(seconds) * 1e6) / 1e3;

export class MemoryDatabase {
  readonly time: VirtualTime;
  readonly random: Random;
  weather: Weather;
  readonly queue = new Map<Uuid, QueueRow>();
  readonly #byEndpoint = new Map<Uuid, Map<Uuid, QueueRow>>();
  readonly ended = new Map<Uuid, EndedRow>();
  readonly health = new Map<Uuid, Health>();
  readonly blocked = new Set<Uuid>();
  readonly workers = new Map<Uuid, WorkerRow>();
  readonly shards: ShardRow[] = Array.from({ length: 256 }, () => ({
    owner: null,
    epoch: 0,
    takenAt: 0,
    uncleanAt: [],
  }));
  readonly endpointMadeAt = new Map<Uuid, number>();
  readonly #sessions = new Set<Session>();
  readonly counts = new Map<string, number>();
  seq = 0;
  /** As PostgreSQL has it: 1 also before the first number was taken. */
  get lastSeq(): number {
    return Math.max(1, this.seq);
  }
  #epoch = 0;
  endpointVersion = 1;
  /** The longest that any statement has taken. */
  slowestMs = 0;

  constructor(time: VirtualTime, random: Random, weather: Weather) {
    this.time = time;
    this.random = random;
    this.weather = weather;
  }

  add(row: QueueRow): void {
    this.queue.set(row.id, row);
    let rows = this.#byEndpoint.get(row.endpointId);
    if (rows === undefined) {
      rows = new Map();
      this.#byEndpoint.set(row.endpointId, rows);
    }
    rows.set(row.id, row);
  }

  waitingOf(endpointId: Uuid): QueueRow[] {
    return [...(this.#byEndpoint.get(endpointId)?.values() ?? [])];
  }

  #end(row: QueueRow, status: EndedRow['status'], reason: string | null, attempts: number): void {
    this.queue.delete(row.id);
    this.#byEndpoint.get(row.endpointId)!.delete(row.id);
    this.ended.set(row.id, { id: row.id, endpointId: row.endpointId, status, reason, attempts });
  }

  /** The process was killed: the server notices at once that its connections are gone. */
  disconnect(process: Process): void {
    for (const session of this.#sessions) if (session.process === process) session.open = false;
  }

  poolOf(process: Process): Pool {
    const pool = {
      query: (statement: Statement | string, values?: unknown[]) =>
        this.#send(process, null, typeof statement === 'string' ? { text: statement } : statement, values),
      connect: async () => {
        const listeners = new Map<string, (argument: never) => void>();
        const session: Session = {
          process,
          open: true,
          notify: (channel, payload) => listeners.get('notification')?.({ channel, payload } as never),
        };
        this.#sessions.add(session);
        let last: Promise<unknown> = Promise.resolve();
        return {
          on: (event: string, listener: (argument: never) => void) => listeners.set(event, listener),
          removeAllListeners: (event: string) => listeners.delete(event),
          query: (statement: Statement | string, values?: unknown[]) => {
            const text = typeof statement === 'string' ? { text: statement } : statement;
            // One connection does one thing after the other.
            const answer = last.then(() => this.#send(process, session, text, values));
            last = answer.catch(() => {});
            return answer;
          },
          release: () => {
            session.open = false;
            this.#sessions.delete(session);
          },
        };
      },
    };
    return pool as unknown as Pool;
  }

  #send(
    process: Process,
    session: Session | null,
    statement: Statement,
    values?: unknown[],
  ): Promise<unknown> {
    const name = statement.name ?? statement.text.trim().split(/\s+/).slice(0, 3).join(' ');
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    const latency = this.weather.latency();
    this.slowestMs = Math.max(this.slowestMs, latency);
    const fault = session?.open === false ? 'lost_request' : this.weather.fault();
    return new Promise((resolve, reject) => {
      const lost = () => reject(new Error('Connection terminated unexpectedly'));
      if (fault === 'lost_request') {
        this.time.after(latency, process, lost);
        return;
      }
      // The effect does not need the process that asked for it.
      this.time.after(latency / 2, null, () => {
        const rows = this.#execute(name, statement.text, values ?? statement.values ?? [], session);
        this.time.after(latency / 2, process, fault === 'lost_answer' ? lost : () => resolve({ rows }));
      });
    });
  }

  #execute(name: string, text: string, values: unknown[], session: Session | null): unknown[] {
    switch (name) {
      case 'load_fresh':
        return this.#loadFresh(values as string[]);
      case 'load_due':
        return this.#loadDue(values as string[]);
      case 'load_lane_states':
        return this.#laneStates(list(values[0] as string));
      case 'load_events':
        return list(values[0] as string).map((id) => ({
          id,
          tenant: 't',
          type: 'x',
          data: Buffer.from('{}'),
          idempotency_key: null,
          options: null,
        }));
      case 'mark_started':
        return this.#markStarted(JSON.parse(values[0] as string), values[1] as Uuid);
      case 'settle':
        return this.#settle(
          JSON.parse(values[0] as string),
          JSON.parse(values[3] as string),
          values[4] as Uuid,
        );
      case 'settle_superseded':
        return [];
      case 'skip_waiting':
        return this.#skip(values[0] as Uuid, values[1] as string, new Set(list(values[2] as string)));
      case 'put_in_order':
        return [];
      case 'expire_waiting':
        return this.#expire(
          values[0] as Uuid,
          (values[2] as number) * 1000,
          new Set(list(values[3] as string)),
        );
      case 'renew':
        return this.#renew(values[0] as Uuid, values[1] as boolean);
      case 'bury_dead_workers':
        return this.#bury(values[0] as Uuid, values[1] as number, values[2] as number);
      case 'take_shards':
        return this.#take(values[0] as Uuid, values[1] as number);
      case 'notify':
        for (const [index, channel] of (values[0] as string[]).entries())
          this.#notify(channel, (values[1] as string[])[index]!);
        return [];
    }
    if (text.startsWith('select pg_notify($1')) this.#notify(values[0] as string, values[1] as string);
    else if (text.startsWith('insert into posthorn.workers')) this.#register(values, session!);
    else if (text.startsWith('select (select count(*) from posthorn.shards')) {
      return [{ surplus: this.#owned(values[0] as Uuid) - this.#share() }];
    } else if (text.startsWith('update posthorn.shards set owner = null')) {
      this.#release(values[0] as Uuid, new Set(values[1] as number[]));
    } else if (text.startsWith('with gone as')) {
      this.workers.delete(values[0] as Uuid);
      this.#release(values[0] as Uuid, null);
    } else if (text.startsWith('update posthorn.queue q set started_at')) {
      const at = list(values[1] as string);
      for (const [index, id] of list(values[0] as string).entries()) {
        const row = this.queue.get(id);
        if (row === undefined) continue;
        row.startedAt = Number(at[index]) * 1000;
        row.carefulStarts = Math.max(row.carefulStarts - 1, 0);
      }
    } else if (!/^(set |listen |select 1$|select pg_advisory_lock)/.test(text)) {
      throw new Error(`the model does not know this statement: ${text}`);
    }
    return [];
  }

  #notify(channel: string, payload: string): void {
    for (const session of this.#sessions) {
      if (!session.open || (channel === 'posthorn_wake' && this.weather.loseWake())) continue;
      this.time.after(this.random.between(0.5, 3), session.process, () => {
        if (session.open) session.notify(channel, payload);
      });
    }
  }

  #loadFresh([ids, after, limits]: string[]): unknown[] {
    const now = this.time.now();
    return list(ids!).flatMap((id, index) =>
      this.waitingOf(id)
        .filter(
          (row) =>
            row.visibleAt <= now && (row.dueAt === null || row.fifo) && row.seq > Number(list(after!)[index]),
        )
        .toSorted((a, b) => a.seq - b.seq)
        .slice(0, Number(list(limits!)[index]))
        .map(toSqlRow),
    );
  }

  #loadDue([ids, from, limits]: string[]): unknown[] {
    const now = this.time.now();
    return list(ids!).flatMap((id, index) =>
      this.waitingOf(id)
        .filter(
          (row) =>
            row.visibleAt <= now && row.dueAt !== null && !row.fifo && row.dueAt >= toMs(list(from!)[index]!),
        )
        .toSorted((a, b) => a.dueAt! - b.dueAt!)
        .slice(0, Number(list(limits!)[index]))
        .map(toSqlRow),
    );
  }

  #laneStates(ids: Uuid[]): unknown[] {
    return ids.map((id) => {
      const health = this.health.get(id);
      return {
        id,
        blocked: this.blocked.has(id),
        circuit: health?.circuit ?? null,
        consecutive_failures: health?.consecutiveFailures ?? 0,
        opened_at: health?.openedAt ?? null,
        cooldown_ms: String(health?.cooldownMs ?? 0),
        next_probe_at: health?.nextProbeAt ?? null,
        failing_since: health?.failingSince ?? null,
        is_new: this.endpointMadeAt.get(id)! > this.shards[shardOf(id)]!.takenAt,
      };
    });
  }

  #markStarted(starts: Record<string, unknown>[], worker: Uuid): unknown[] {
    return starts.flatMap((start) => {
      const row = this.queue.get(start.delivery_id as Uuid);
      if (row === undefined || row.attempts !== start.attempts) return [];
      if (this.shards[start.shard as number]!.owner !== worker) return [];
      row.startedAt = this.time.now();
      if (start.careful) row.carefulStarts += 1;
      const health = start.endpoint_id === undefined ? undefined : this.health.get(start.endpoint_id as Uuid);
      if (health !== undefined && health.circuit !== 'closed') {
        this.health.set(start.endpoint_id as Uuid, {
          ...health,
          circuit: 'half_open',
          nextProbeAt: (start.next_probe_at as number) * 1000,
        });
      }
      return [{ id: row.id }];
    });
  }

  #settle(rows: Record<string, unknown>[], health: Record<string, unknown>[], worker: Uuid): unknown[] {
    const moved: unknown[] = [];
    for (const settlement of rows) {
      const row = this.queue.get(settlement.delivery_id as Uuid);
      if (row === undefined || row.attempts !== settlement.before) continue;
      moved.push({ id: row.id });
      if (settlement.verdict === 'retry') {
        row.attempts += 1;
        row.dueAt = toMs(settlement.due_at as number);
        row.startedAt = null;
        row.carefulStarts = 0;
        continue;
      }
      const attempts = row.attempts + (settlement.attempt_id === undefined ? 0 : 1);
      this.#end(
        row,
        settlement.verdict as 'delivered' | 'dead',
        (settlement.reason as string) ?? null,
        attempts,
      );
      if (settlement.blocks === true) this.blocked.add(row.endpointId);
    }
    const ms = (seconds: unknown) => (seconds === null ? null : (seconds as number) * 1000);
    for (const change of health) {
      if (this.shards[change.shard as number]!.owner !== worker) continue;
      this.health.set(change.endpoint_id as Uuid, {
        circuit: change.circuit as Health['circuit'],
        consecutiveFailures: change.consecutive_failures as number,
        openedAt: ms(change.opened_at),
        cooldownMs: change.cooldown_ms as number,
        nextProbeAt: ms(change.next_probe_at),
        failingSince: ms(change.failing_since),
      });
    }
    return moved;
  }

  #skip(endpointId: Uuid, reason: string, except: ReadonlySet<Uuid>): unknown[] {
    const now = this.time.now();
    const doomed = this.waitingOf(endpointId)
      .filter((row) => row.visibleAt <= now && !except.has(row.id))
      .slice(0, 7);
    for (const row of doomed) this.#end(row, 'skipped', reason, row.attempts);
    return [{ ended: doomed.length }];
  }

  #expire(endpointId: Uuid, before: number, except: ReadonlySet<Uuid>): unknown[] {
    const now = this.time.now();
    const doomed = this.waitingOf(endpointId)
      .filter((row) => row.visibleAt <= now && timeOfId(row.id) < before && !except.has(row.id))
      .slice(0, 7);
    for (const row of doomed) this.#end(row, 'dead', 'expired', row.attempts);
    return [{ ended: doomed.length }];
  }

  #register([id, name]: unknown[], session: Session): void {
    const known = this.workers.get(id as Uuid);
    if (known !== undefined) {
      known.lock = session;
      return;
    }
    this.workers.set(id as Uuid, {
      id: id as Uuid,
      name: name as string,
      lock: session,
      renewedAt: this.time.now(),
      stopping: false,
    });
  }

  #renew(id: Uuid, stopping: boolean): unknown[] {
    const worker = this.workers.get(id);
    if (worker === undefined) return [];
    worker.renewedAt = this.time.now();
    worker.stopping = stopping;
    const shards = this.shards.flatMap(({ owner, epoch }, shard) => (owner === id ? [{ shard, epoch }] : []));
    return [
      {
        now: String(this.time.now()),
        version: String(this.endpointVersion),
        last_seq: String(this.lastSeq),
        shards,
      },
    ];
  }

  #bury(id: Uuid, silentMs: number, deadMs: number): unknown[] {
    const now = this.time.now();
    const buried: unknown[] = [];
    for (const worker of [...this.workers.values()]) {
      const silence = now - worker.renewedAt;
      if (worker.id === id || !(silence > deadMs || (silence > silentMs && !worker.lock.open))) continue;
      this.workers.delete(worker.id);
      for (const [shard, row] of this.shards.entries()) {
        if (row.owner !== worker.id) continue;
        row.owner = null;
        row.epoch = ++this.#epoch;
        row.uncleanAt.unshift(now);
        buried.push({ name: worker.name, shard });
      }
    }
    return buried;
  }

  #living(): number {
    return [...this.workers.values()].filter((worker) => !worker.stopping).length;
  }

  #share(): number {
    return Math.ceil(256 / Math.max(1, this.#living()));
  }

  #owned(id: Uuid): number {
    return this.shards.filter(({ owner }) => owner === id).length;
  }

  #take(id: Uuid, windowMs: number): unknown[] {
    const worker = this.workers.get(id);
    if (worker === undefined || worker.stopping) return [];
    let room = Math.max(0, this.#share() - this.#owned(id));
    const now = this.time.now();
    const taken: unknown[] = [];
    for (const [shard, row] of this.shards.entries()) {
      if (row.owner !== null || room === 0) continue;
      room -= 1;
      row.owner = id;
      row.takenAt = now;
      row.epoch = ++this.#epoch;
      const crashes = row.uncleanAt.slice(0, 8).filter((at) => at > now - windowMs).length;
      taken.push({ shard, epoch: String(row.epoch), crashes: String(crashes) });
    }
    return taken;
  }

  #release(id: Uuid, shards: ReadonlySet<number> | null): void {
    for (const [shard, row] of this.shards.entries()) {
      if (row.owner === id && (shards === null || shards.has(shard))) row.owner = null;
    }
  }

  ownerOf(endpointId: Uuid): Uuid | null {
    return this.shards[shardOf(endpointId)]!.owner;
  }
}

function toSqlRow(row: QueueRow) {
  return {
    id: row.id,
    endpoint_id: row.endpointId,
    seq: String(row.seq),
    attempts: row.attempts,
    attempts_before_replay: 0,
    careful_starts: row.carefulStarts,
    trigger: 'auto',
    last_error_class: null,
    due_at: row.dueAt,
    ages_from: null,
    started_at: row.startedAt,
  };
}
