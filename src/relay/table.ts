/**
 * Taking rows from the outbox table, a batch at a time:
 *
 *   lock the next rows ──▶ Posthorn takes them (durable) ──▶ remove or mark them ──▶ commit here
 *
 * A crash before the last step gives the rows back; they are taken again, Posthorn knows their ids, and they are only
 * removed. Any number of relays may do this at once: what one holds the others pass over.
 */
import { type Client, inTransaction, type Pool } from '../postgres/database.ts';
import {
  lastWaitingSeq,
  markProblems,
  markPublished,
  type OutboxRow,
  removeRows,
  takeRows,
} from '../postgres/queries/outbox-table.ts';
import { bodyOfRow, madeAtOfRow } from './row-to-body.ts';
import type { Fate, Incoming, Sink, Tally } from './sink.ts';

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

  /** The `seq` of the last row that waits, of those up to this one; null: none does. */
  lastWaiting(untilSeq: string | null = null): Promise<string | null> {
    return lastWaitingSeq(this.#options.source, this.#options.table, untilSeq);
  }

  /** Carries one batch over, of rows up to this `seq`. Returns how many rows that were; 0: what waits is locked. */
  async carryBatch(untilSeq: string | null = null): Promise<number> {
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
      const fates = await sink.accept(items);
      await this.settle(client, items, fates);
      tally.count(fates);
      return rows.length;
    });
  }

  /** What was taken is removed or marked, what was refused is marked with the reason. */
  async settle(client: Pool | Client, items: readonly Incoming[], fates: readonly Fate[]): Promise<void> {
    const { table, keep } = this.#options;
    const published: { id: string; eventId: string }[] = [];
    const refused: { id: string; problem: string }[] = [];
    for (const [index, { id }] of items.entries()) {
      const fate = fates[index]!;
      if (fate.kind === 'accepted') published.push({ id, eventId: fate.eventId });
      else refused.push({ id, problem: fate.problem });
    }
    if (keep) await markPublished(client, table, published);
    else
      await removeRows(
        client,
        table,
        published.map(({ id }) => id),
      );
    await markProblems(client, table, refused);
  }
}

function toIncoming({ id, columns, tooLargeBytes }: OutboxRow): Incoming {
  return {
    id,
    madeAt: madeAtOfRow(columns),
    body: bodyOfRow(columns),
    mayCarryId: false,
    problem: tooLargeBytes === null ? null : `data: has ${tooLargeBytes} bytes, too many for an event`,
  };
}
