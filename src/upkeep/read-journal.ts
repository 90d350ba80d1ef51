/** Text of the journal, checked: one row that cannot be added up must not keep all the others from it. Pure. */
import { HISTOGRAM_BUCKETS } from '../domain/histogram.ts';
import {
  type JournalEntry,
  type JournalRow,
  NO_BUCKET,
  NUMBERS_PER_ATTEMPT,
  VERDICTS,
  type WrittenRow,
} from '../postgres/queries/stats-journal.ts';

export type UnreadableRow = WrittenRow & { readonly problem: string };

export interface ReadJournal {
  readonly rows: readonly JournalRow[];
  readonly unreadable: readonly UnreadableRow[];
}

export function readJournal(written: readonly WrittenRow[]): ReadJournal {
  const rows: JournalRow[] = [];
  const unreadable: UnreadableRow[] = [];
  for (const row of written) {
    try {
      rows.push({ at: readTime(row.at), counts: readEntry(row.counts) });
    } catch (error) {
      unreadable.push({ ...row, problem: error instanceof Error ? error.message : String(error) });
    }
  }
  return { rows, unreadable };
}

/** More than a commit can be about; the figures are counted in 32 bits. */
const MOST_AT_ONCE = 10_000_000;
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;
const LAST_VERDICT = Math.max(...Object.values(VERDICTS));

const isName = (value: unknown): boolean =>
  typeof value === 'string' && value.isWellFormed() && !value.includes('\0');
const isId = (value: unknown): boolean => typeof value === 'string' && UUID.test(value);
const isWithin = (least: number, most: number) => (value: unknown) =>
  Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
const isCount = isWithin(0, MOST_AT_ONCE);
const isBucket = isWithin(NO_BUCKET, HISTOGRAM_BUCKETS - 1);
const NUMBERS = [isWithin(0, LAST_VERDICT), isWithin(1, MOST_AT_ONCE), isBucket, isBucket];
const areAttempts = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.length % NUMBERS_PER_ATTEMPT === 0 &&
  value.every((number, place) => NUMBERS[place % NUMBERS_PER_ATTEMPT]!(number));

/** What each list of an entry is made of. */
const COLUMNS: Readonly<Record<keyof JournalEntry, readonly ((value: unknown) => boolean)[]>> = {
  accepted: [isName, isName, isCount],
  attempts: [isId, isName, isName, areAttempts],
  dead: [isId, isName, isName, isCount],
};

function readEntry(text: string): JournalEntry {
  const entry: unknown = JSON.parse(text);
  if (typeof entry !== 'object' || entry === null) throw new Error('is no object');
  for (const [name, columns] of Object.entries(COLUMNS)) {
    const list: unknown = Reflect.get(entry, name);
    if (list === undefined) continue;
    if (!Array.isArray(list)) throw new Error(`"${name}" is no list`);
    for (const [place, row] of list.entries()) {
      const fits =
        Array.isArray(row) &&
        row.length >= columns.length &&
        columns.every((check, column) => check(row[column]));
      if (!fits) throw new Error(`"${name}"[${place}] is not what the journal is made of`);
    }
  }
  return entry;
}

function readTime(at: number): number {
  if (!Number.isFinite(at)) throw new Error('has no time');
  return at;
}
