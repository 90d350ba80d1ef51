/**
 * Reads rows of the statistics journal. During an upgrade another version of Posthorn may have written some of them: a
 * row with another shape is set aside instead of failing all the others.
 */
import { HISTOGRAM_BUCKETS } from '../domain/histogram.ts';
import { type JournalEntry, NUMBERS_PER_ATTEMPT, VERDICTS } from '../domain/statistics.ts';
import type { JournalRow, UnreadableJournalRow } from '../ports/statistics-store.ts';

export interface ReadableRow {
  readonly at: number;
  readonly entry: JournalEntry;
}

export function readJournal(rows: readonly JournalRow[]): {
  readonly readable: readonly ReadableRow[];
  readonly unreadable: readonly UnreadableJournalRow[];
} {
  const readable: ReadableRow[] = [];
  const unreadable: UnreadableJournalRow[] = [];
  for (const row of rows) {
    try {
      const entry = JSON.parse(row.counts) as JournalEntry;
      if (!isEntry(entry)) throw new Error('has the shape of another version');
      readable.push({ at: row.at, entry });
    } catch (error) {
      unreadable.push({ ...row, problem: error instanceof Error ? error.message : String(error) });
    }
  }
  return { readable, unreadable };
}

function isEntry({ accepted = [], attempts = [], dead = [], skipped = [] }: JournalEntry): boolean {
  return (
    accepted.every(([, , count]) => Number.isInteger(count)) &&
    dead.every(([, , , count]) => Number.isInteger(count)) &&
    skipped.every(([, count]) => Number.isInteger(count)) &&
    attempts.every(([, , , numbers]) => areAttempts(numbers))
  );
}

const LAST_VERDICT = Math.max(...Object.values(VERDICTS));

function areAttempts(numbers: readonly number[]): boolean {
  if (numbers.length % NUMBERS_PER_ATTEMPT !== 0) return false;
  for (let i = 0; i < numbers.length; i += NUMBERS_PER_ATTEMPT) {
    if (!(numbers[i]! <= LAST_VERDICT && numbers[i + 1]! >= 1)) return false;
    // A bucket is an index: a large one would allocate that much memory.
    if (!(numbers[i + 2]! < HISTOGRAM_BUCKETS && numbers[i + 3]! < HISTOGRAM_BUCKETS)) return false;
  }
  return true;
}
