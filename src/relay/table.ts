/**
 * Moves rows of the outbox table to Posthorn, a batch at a time:
 *
 *   lock the next rows ──▶ Posthorn stores them (durable) ──▶ remove or mark them ──▶ commit in the source
 *
 * After a crash before the last step the rows are locked and sent again; Posthorn recognizes their ids, and they are
 * only removed. Any number of relays may do this at the same time: each skips the rows that another one has locked.
 */
import { type Client, inTransaction, type Pool } from '../postgres/database.ts';
import {
  findLastWaitingSeq,
  markProblems,
  markPublished,
  removeRows,
  type SourceRow,
  takeRows,
} from '../postgres/queries/outbox-table.ts';
import { bodyOfRow, createdAtOfRow } from './row-body.ts';
import type { Incoming, Sink, SinkResult, Tally } from './sink.ts';

export interface TableOptions {
  readonly source: Pool;
  readonly sink: Sink;
  readonly tally: Tally;
  readonly table: string;
  readonly keep: boolean;
  readonly batchRows: number;
  readonly batchBytes: number;
  readonly maxEventBytes: number;
}

export class OutboxTable {
  readonly #options: TableOptions;

  constructor(options: TableOptions) {
    this.#options = options;
  }

  /** Returns the `seq` of the last waiting row up to `untilSeq`. Null: none waits. */
  findLastWaiting(untilSeq: string | null = null): Promise<string | null> {
    return findLastWaitingSeq(this.#options.source, this.#options.table, untilSeq);
  }

  /** Moves one batch of rows up to `untilSeq`. Returns how many. 0: none waits, or all waiting rows are locked. */
  async moveBatch(untilSeq: string | null = null): Promise<number> {
    const { source, sink, tally, table, batchRows, batchBytes, maxEventBytes } = this.#options;
    return inTransaction(source, async (client) => {
      const rows = await takeRows(client, table, {
        rows: batchRows,
        bytes: batchBytes,
        maxEventBytes,
        untilSeq,
      });
      if (rows.length === 0) return 0;
      const items = rows.map(toIncoming);
      const results = await sink.accept(items);
      await this.finishRows(client, items, results);
      tally.count(results);
      return rows.length;
    });
  }

  /** Removes or marks accepted rows, and marks rejected rows with the reason. */
  async finishRows(
    client: Pool | Client,
    items: readonly Incoming[],
    results: readonly SinkResult[],
  ): Promise<void> {
    const { table, keep } = this.#options;
    const published: { id: string; eventId: string }[] = [];
    const rejected: { id: string; problem: string }[] = [];
    for (const [index, { id }] of items.entries()) {
      const result = results[index]!;
      if (result.kind === 'accepted') published.push({ id, eventId: result.eventId });
      else rejected.push({ id, problem: result.problem });
    }
    if (keep) await markPublished(client, table, published);
    else
      await removeRows(
        client,
        table,
        published.map(({ id }) => id),
      );
    await markProblems(client, table, rejected);
  }
}

function toIncoming({ id, columns, tooLargeBytes }: SourceRow): Incoming {
  return {
    id,
    createdAt: createdAtOfRow(columns),
    body: bodyOfRow(columns),
    mayCarryId: false,
    problem:
      tooLargeBytes === null ? null : `data: has ${tooLargeBytes} bytes, more than the limit for an event`,
  };
}
