/**
 * Change data capture: follows the log of the source through a replication slot.
 *
 *   no slot, or it was lost ──▶ create one; the table must be read first
 *   slot in use             ──▶ another relay follows it: stand by
 *   slot is free            ──▶ (read the table if necessary) ──▶ follow
 *
 *   changes ──▶ Posthorn stores a batch (durable) ──▶ its rows are removed from the table ──▶ position confirmed
 *
 * The order matters. The source sends unconfirmed changes again, and Posthorn recognizes their ids. A row leaves the table
 * only after it is stored, so if the slot is lost, all rows that were not stored are still in the table.
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
  recordLostSlot,
  recordNewSlot,
  recordTableRead,
  registerSource,
} from '../postgres/queries/relay-sources.ts';
import { type ReplicationStream, showLsn, startReplication } from '../postgres/replication.ts';
import type { Log } from '../telemetry/log.ts';
import { LogReader, type ReplicatedEvent } from './log-reader.ts';
import { RelayError } from './relay-error.ts';
import type { Sink, SinkResult, Tally } from './sink.ts';
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
  /** Null: the source has no table and emits messages only. */
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

/** The stream is paused if more than this many batches wait to be stored. */
const QUEUE_BATCHES = 4;
/** SQLSTATE object_in_use. */
const IN_USE = '55006';
const VISIBILITY_PAUSE_MS = 2;
const LOCKED_ROWS_PAUSE_MS = 200;
const MESSAGES_SINCE_VERSION = 140_000;

export class LogFollower {
  readonly #options: LogFollowerOptions;
  #reader: LogReader | null = null;
  #confirmed: bigint | null = null;
  #isStandby = false;

  constructor(options: LogFollowerOptions) {
    this.#options = options;
  }

  /** True while another relay follows this slot. */
  get isStandby(): boolean {
    return this.#isStandby;
  }

  get confirmedLsn(): string | null {
    return this.#confirmed === null ? null : showLsn(this.#confirmed);
  }

  /** When the oldest unfinished transaction was committed, by the source's clock. */
  get oldestCommittedAt(): number | null {
    return this.#reader?.oldestCommittedAt ?? null;
  }

  /**
   * Returns the last row of the table that must be read before the log, because the log may lack rows up to it. Null: the
   * log is complete. Reads this from the database each time: another relay may have created the slot and died before it
   * had read the table.
   */
  async prepare(): Promise<string | null> {
    const { pool, name, table } = this.#options;
    const { needsTable } = await registerSource(pool, name, 'cdc');
    if (!needsTable) return null;
    const lastSeq = (await table?.findLastWaiting()) ?? null;
    if (lastSeq === null) await recordTableRead(pool, name);
    return lastSeq;
  }

  /** Follows the log until `stopping`. Throws if a connection is lost; calling it again continues. */
  async run(stopping: AbortSignal, onProgress: () => void): Promise<void> {
    const { name, log } = this.#options;
    const opened = await this.#open(stopping);
    if (opened === null) return;
    const { stream, wakeUp } = opened;
    try {
      stream.pause();
      const lastSeq = await this.prepare();
      if (lastSeq !== null) await this.#readTable(lastSeq, stopping);
      stream.resume();
      log.info({ source: name, slot: this.#options.slot }, 'following the log');
      await this.#follow(stream, wakeUp, stopping, onProgress);
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
          this.#isStandby = false;
          return opened;
        } catch (error) {
          if ((error as { code?: unknown }).code !== IN_USE) throw error;
        }
      }
      if (!this.#isStandby) log.info({ source: name, slot }, 'another relay follows this slot; standing by');
      this.#isStandby = true;
      await pause(statusMs);
    }
    return null;
  }

  /** Creates the slot if it does not exist. Returns false if another relay uses it. */
  async #ensureSlot(): Promise<boolean> {
    const { source, pool, name, slot, facts, log } = this.#options;
    const state = await readSlot(source, slot);
    if (state !== null && (state.plugin !== 'pgoutput' || state.database !== facts.database)) {
      throw new RelayError(
        `The replication slot "${slot}" belongs to the plugin ${state.plugin} and the database ${state.database}.`,
        `Choose another name with --slot, or drop it: select pg_drop_replication_slot('${slot}').`,
        { final: true },
      );
    }
    if (state !== null && !state.lost) return !state.active;
    const { confirmedLsn } = await registerSource(pool, name, 'cdc');
    const wasLost = state?.lost === true || confirmedLsn !== null;
    await recordLostSlot(pool, name, wasLost);
    if (state !== null) await dropSlot(source, slot);
    const lsn = await createSlot(source, slot);
    await recordNewSlot(pool, name, lsn);
    if (!wasLost) {
      log.info({ source: name, slot, lsn }, 'created the replication slot');
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
      'the replication slot was lost and has been created again. Rows are read from the table. Messages ' +
        '(pg_logical_emit_message) that were committed between these two positions are lost',
    );
    return true;
  }

  async #start() {
    const { sourceUrl, slot, publication, facts, name, statusMs, maxEventBytes } = this.#options;
    const reader = new LogReader({ table: facts.table, source: name, maxEventBytes });
    const wakeUp = new WakeUp();
    const stream = await startReplication({
      connectionString: sourceUrl,
      slot,
      statusMs,
      pluginOptions: {
        proto_version: '1',
        publication_names: `"${publication.replaceAll('"', '""')}"`,
        ...(facts.serverVersion >= MESSAGES_SINCE_VERSION && { messages: 'true' }),
      },
      onData: (payload) => {
        try {
          reader.read(payload);
        } catch (error) {
          wakeUp.fail(error);
        }
        wakeUp.signal();
      },
      onCaughtUp: (lsn) => {
        reader.onCaughtUp(lsn);
        wakeUp.signal();
      },
    });
    this.#reader = reader;
    this.#confirmed = null;
    stream.ended.catch((error) => wakeUp.fail(error));
    return { stream, wakeUp };
  }

  /** Moves rows that were committed before the slot existed. Rows that the log has too are recognized by their id. */
  async #readTable(lastSeq: string, stopping: AbortSignal): Promise<void> {
    const { table, pool, name, log, pause } = this.#options;
    let rows = 0;
    let isWaiting = false;
    while (!stopping.aborted) {
      const moved = await table!.moveBatch(lastSeq);
      rows += moved;
      if (moved > 0) continue;
      // The other rows are locked, perhaps by a relay that died. Wait for them, because nothing would read them later.
      if ((await table!.findLastWaiting(lastSeq)) !== null) {
        if (!isWaiting)
          log.warn({ source: name }, 'rows of the table are locked by another transaction; waiting');
        isWaiting = true;
        await pause(LOCKED_ROWS_PAUSE_MS);
        continue;
      }
      await recordTableRead(pool, name);
      log.info({ source: name, rows }, 'read the table');
      return;
    }
  }

  async #follow(
    stream: ReplicationStream,
    wakeUp: WakeUp,
    stopping: AbortSignal,
    onProgress: () => void,
  ): Promise<void> {
    const { batchRows, batchBytes, sink, tally } = this.#options;
    const reader = this.#reader!;
    stopping.addEventListener('abort', () => wakeUp.signal(), { once: true });
    wakeUp.onSignal = () => {
      if (reader.waiting > QUEUE_BATCHES * batchRows || reader.waitingBytes > QUEUE_BATCHES * batchBytes)
        stream.pause();
    };
    // The rows of one batch are removed while Posthorn stores the next batch.
    let finishing: Promise<void> | null = null;
    try {
      while (!stopping.aborted) {
        wakeUp.clear();
        wakeUp.throwIfFailed();
        if (reader.waiting > 0) {
          const batch = reader.take(batchRows, batchBytes);
          if (reader.waiting < batchRows && reader.waitingBytes < batchBytes) stream.resume();
          const results = await sink.accept(batch);
          tally.count(results);
          await finishing;
          finishing = this.#finishRows(batch, results, stopping).then((isFinished) => {
            finishing = null;
            if (isFinished) this.#confirm(stream, reader.finish(batch.length));
          });
          // Its error is thrown where it is awaited: before the next batch, or at the end.
          finishing.catch(() => {});
          onProgress();
        } else if (finishing !== null) {
          await Promise.race([finishing, wakeUp.next]);
        } else {
          this.#confirm(stream, reader.finish(0));
          await wakeUp.next;
          wakeUp.throwIfFailed();
          onProgress();
        }
      }
    } finally {
      await finishing;
    }
  }

  /** Removes the rows of a batch. Returns false if the relay stops before that: the batch will be read again. */
  async #finishRows(
    batch: readonly ReplicatedEvent[],
    results: readonly SinkResult[],
    stopping: AbortSignal,
  ): Promise<boolean> {
    const { source, table } = this.#options;
    const rows = batch.filter(({ isRow }) => isRow);
    if (table === null || rows.length === 0) return true;
    if (!(await this.#areVisible(rows, stopping))) return false;
    await table.finishRows(
      source,
      rows,
      results.filter((_, index) => batch[index]!.isRow),
    );
    return true;
  }

  /**
   * A commit is in the log a moment before its rows are visible. Deleting a row in that moment would delete nothing, and
   * the row would stay forever. With synchronous standbys the moment may be long, so a stop does not wait for it.
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
