/**
 * Change data capture: follows the log of the source through a replication slot.
 *
 *   no slot, or a lost one ──▶ make one; the table is to be read
 *   slot in use            ──▶ another relay follows: stand by
 *   slot is ours           ──▶ (read the table if it is to be read) ──▶ follow
 *
 *   arrivals ──▶ Posthorn takes a batch (durable) ──▶ its rows are removed from the table ──▶ position confirmed
 *
 * In this order: what was not confirmed is sent again, and is known by its id; a row that is still in the table was
 * perhaps not brought. So after the loss of a slot the table has everything that the log no longer has.
 */
import type { Pool } from '../postgres/database.ts';
import {
  createSlot,
  dropSlot,
  readSlot,
  readVisibility,
  type SourceFacts,
} from '../postgres/queries/outbox-table.ts';
import {
  noteLostSlot,
  noteNewSlot,
  noteTableRead,
  registerSource,
} from '../postgres/queries/relay-sources.ts';
import { type ReplicationStream, showLsn, startReplication } from '../postgres/replication.ts';
import type { Log } from '../telemetry/log.ts';
import { type Arrival, LogReader } from './log-reader.ts';
import { RelayError } from './relay-error.ts';
import type { Fate, Sink, Tally } from './sink.ts';
import type { OutboxTable } from './table.ts';
import { WakeUp } from './wake-up.ts';

export interface LogFollowerOptions {
  readonly name: string;
  readonly sourceUrl: string;
  readonly source: Pool;
  readonly pool: Pool;
  readonly log: Log;
  readonly sink: Sink;
  readonly tally: Tally;
  /** Null: there is no table, only messages. */
  readonly table: OutboxTable | null;
  readonly facts: SourceFacts;
  readonly slot: string;
  readonly publication: string;
  readonly batchRows: number;
  readonly batchBytes: number;
  readonly maxEventBytes: number;
  readonly statusMs: number;
  readonly pause: (ms: number) => Promise<void>;
}

/** What may have arrived and not be done yet, before the source is asked to wait. */
const QUEUE_BATCHES = 4;
const IN_USE = '55006';
const VISIBILITY_PAUSE_MS = 2;
const LOCKED_ROWS_PAUSE_MS = 200;
const MESSAGES_SINCE_VERSION = 140_000;

export class LogFollower {
  readonly #options: LogFollowerOptions;
  #reader: LogReader | null = null;
  #confirmed: bigint | null = null;
  #standsBy = false;

  constructor(options: LogFollowerOptions) {
    this.#options = options;
  }

  /** True while another relay follows this slot. */
  get standsBy(): boolean {
    return this.#standsBy;
  }

  get confirmedLsn(): string | null {
    return this.#confirmed === null ? null : showLsn(this.#confirmed);
  }

  /** When the oldest transaction that arrived and is not done was committed, by the source's clock. */
  get oldestCommittedAt(): number | null {
    return this.#reader?.oldestCommittedAt ?? null;
  }

  /**
   * Up to which row the table has to be read before the log: those are not all in it. Null: all are. Asked of the database
   * each time: whoever made the slot may have died before it had read the table, while this one stood by.
   */
  async prepare(): Promise<string | null> {
    const { pool, name, table } = this.#options;
    const { needsTable } = await registerSource(pool, name, 'cdc');
    if (!needsTable) return null;
    const until = (await table?.lastWaiting()) ?? null;
    if (until === null) await noteTableRead(pool, name);
    return until;
  }

  /** Until `stopping`; throws when something is lost that a new try may find again. */
  async run(stopping: AbortSignal, went: () => void): Promise<void> {
    const { name, log } = this.#options;
    const opened = await this.#open(stopping);
    if (opened === null) return;
    const { stream, arrival } = opened;
    try {
      stream.pause();
      const until = await this.prepare();
      if (until !== null) await this.#readTable(until, stopping);
      stream.resume();
      log.info({ source: name, slot: this.#options.slot }, 'following the log');
      await this.#follow(stream, arrival, stopping, went);
    } finally {
      this.#reader = null;
      await stream.stop().catch(() => {});
    }
  }

  async #open(stopping: AbortSignal) {
    const { name, log, slot, statusMs, pause } = this.#options;
    while (!stopping.aborted) {
      const usable = await this.#ensureSlot();
      if (usable) {
        try {
          const opened = await this.#start();
          this.#standsBy = false;
          return opened;
        } catch (error) {
          if ((error as { code?: unknown }).code !== IN_USE) throw error;
        }
      }
      if (!this.#standsBy) log.info({ source: name, slot }, 'another relay follows this slot; standing by');
      this.#standsBy = true;
      await pause(statusMs);
    }
    return null;
  }

  /** False: in use by another. */
  async #ensureSlot(): Promise<boolean> {
    const { source, pool, name, slot, facts, log } = this.#options;
    const state = await readSlot(source, slot);
    if (state !== null && (state.plugin !== 'pgoutput' || state.database !== facts.database)) {
      throw new RelayError(
        `The replication slot "${slot}" is of the plugin ${state.plugin} in the database ${state.database}.`,
        `Choose another name with --slot, or drop it: select pg_drop_replication_slot('${slot}').`,
        { final: true },
      );
    }
    if (state !== null && !state.lost) return !state.active;
    const { confirmedLsn } = await registerSource(pool, name, 'cdc');
    const wasLost = state?.lost === true || confirmedLsn !== null;
    await noteLostSlot(pool, name, wasLost);
    if (state !== null) await dropSlot(source, slot);
    const lsn = await createSlot(source, slot);
    await noteNewSlot(pool, name, lsn);
    if (!wasLost) {
      log.info({ source: name, slot, lsn }, 'made the replication slot');
      return true;
    }
    log.error(
      {
        source: name,
        slot,
        lostAfter: confirmedLsn,
        lostBefore: lsn,
        reason: state === null ? 'dropped' : 'invalidated',
      },
      'the replication slot was lost and has been made anew. Rows of the table are read from there. Messages without a ' +
        'row (pg_logical_emit_message) that were committed between these two positions are gone',
    );
    return true;
  }

  async #start() {
    const { sourceUrl, slot, publication, facts, name, statusMs, maxEventBytes } = this.#options;
    const reader = new LogReader({ table: facts.table, source: name, maxEventBytes });
    const arrival = new WakeUp();
    const stream = await startReplication({
      connectionString: sourceUrl,
      slot,
      statusMs,
      pluginOptions: {
        proto_version: '1',
        publication_names: `"${publication.replaceAll('"', '""')}"`,
        ...(facts.serverVersion >= MESSAGES_SINCE_VERSION && { messages: 'true' }),
      },
      data: (payload) => {
        try {
          reader.read(payload);
        } catch (error) {
          arrival.fail(error);
        }
        arrival.signal();
      },
      caughtUp: (lsn) => {
        reader.caughtUp(lsn);
        arrival.signal();
      },
    });
    this.#reader = reader;
    this.#confirmed = null;
    stream.ended.catch((error) => arrival.fail(error));
    return { stream, arrival };
  }

  /** What the log does not have: rows from before the slot. What it has as well is known by its id. */
  async #readTable(until: string, stopping: AbortSignal): Promise<void> {
    const { table, pool, name, log, pause } = this.#options;
    let rows = 0;
    let waits = false;
    while (!stopping.aborted) {
      const carried = await table!.carryBatch(until);
      rows += carried;
      if (carried > 0) continue;
      // Passed over because somebody holds them, perhaps a relay that is gone: nobody would ever look at them again.
      if ((await table!.lastWaiting(until)) !== null) {
        if (!waits)
          log.warn({ source: name }, 'rows of the table are locked by another transaction; waiting');
        waits = true;
        await pause(LOCKED_ROWS_PAUSE_MS);
        continue;
      }
      await noteTableRead(pool, name);
      log.info({ source: name, rows }, 'read the table');
      return;
    }
  }

  async #follow(
    stream: ReplicationStream,
    arrival: WakeUp,
    stopping: AbortSignal,
    went: () => void,
  ): Promise<void> {
    const { batchRows, batchBytes, sink, tally } = this.#options;
    const reader = this.#reader!;
    stopping.addEventListener('abort', () => arrival.signal(), { once: true });
    arrival.onSignal = () => {
      if (reader.waiting > QUEUE_BATCHES * batchRows || reader.waitingBytes > QUEUE_BATCHES * batchBytes)
        stream.pause();
    };
    // The rows of one batch are removed while Posthorn takes the next one.
    let settling: Promise<void> | null = null;
    try {
      while (!stopping.aborted) {
        arrival.clear();
        arrival.throwIfFailed();
        if (reader.waiting > 0) {
          const batch = reader.take(batchRows, batchBytes);
          if (reader.waiting < batchRows && reader.waitingBytes < batchBytes) stream.resume();
          const fates = await sink.accept(batch);
          tally.count(fates);
          await settling;
          settling = this.#settle(batch, fates, stopping).then((settled) => {
            settling = null;
            if (settled) this.#confirm(stream, reader.finish(batch.length));
          });
          // Thrown where it is awaited, before the next batch or below.
          settling.catch(() => {});
          went();
        } else if (settling !== null) {
          await Promise.race([settling, arrival.next]);
        } else {
          this.#confirm(stream, reader.finish(0));
          await arrival.next;
          arrival.throwIfFailed();
          went();
        }
      }
    } finally {
      await settling;
    }
  }

  /** False: it is left to whoever comes after the stop, and known by its ids. */
  async #settle(batch: readonly Arrival[], fates: readonly Fate[], stopping: AbortSignal): Promise<boolean> {
    const { source, table } = this.#options;
    const rows = batch.filter(({ isRow }) => isRow);
    if (table === null || rows.length === 0) return true;
    if (!(await this.#areVisible(rows, stopping))) return false;
    await table.settle(
      source,
      rows,
      fates.filter((_, index) => batch[index]!.isRow),
    );
    return true;
  }

  /**
   * A commit is in the log a moment before it is in the table for all to see. Whoever removes the row in that moment
   * removes nothing, and it would stay for ever. Where commits wait for a standby, the moment may be long: a stop does not
   * wait for it.
   */
  async #areVisible(rows: readonly { readonly xid: number }[], stopping: AbortSignal): Promise<boolean> {
    for (;;) {
      const isVisible = await readVisibility(this.#options.source);
      if (rows.every(({ xid }) => isVisible(xid))) return true;
      if (stopping.aborted) return false;
      await this.#options.pause(VISIBILITY_PAUSE_MS);
    }
  }

  #confirm(stream: ReplicationStream, lsn: bigint | null): void {
    if (lsn === null || (this.#confirmed !== null && lsn <= this.#confirmed)) return;
    this.#confirmed = lsn;
    stream.confirm(lsn);
  }
}
