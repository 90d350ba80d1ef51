/**
 * Keeps a copy of the tombstones in the archive, one file per day. A database that is restored from a backup lacks the tombstones
 * that were written after the backup: it gets them back from here, and what they expunged is expunged again.
 *
 * `latest.json` names the last copy. If the database does not know that copy, it is older than the archive.
 */
import { randomUUID } from 'node:crypto';
import { ArchiveError } from '../domain/archive.ts';
import type { Uuid } from '../domain/ids.ts';
import { formatTombstones, parseTombstones } from '../domain/tombstones.ts';
import type { ArchiveStore } from '../ports/archive-store.ts';
import type { ArchiveTarget } from './targets/target.ts';

const FOLDER = 'tombstones/';
const LATEST = `${FOLDER}latest.json`;
const nameOf = (day: string): string => `${FOLDER}day=${day}.jsonl`;

type Store = Pick<
  ArchiveStore,
  | 'readTombstoneCopy'
  | 'setTombstoneCopy'
  | 'readLastTombstone'
  | 'listChangedDays'
  | 'listTombstones'
  | 'mergeTombstones'
>;

export async function copyTombstones(store: Store, target: ArchiveTarget): Promise<void> {
  const known = await store.readTombstoneCopy();
  const found = await readLatest(target);
  if (found !== null && found !== known.token) await mergeAll(store, target);
  const upTo = await store.readLastTombstone();
  // Without a copy all are missing, for instance in a new archive.
  const days = await store.listChangedDays(found === null ? '0' : known.upTo);
  for (const day of days)
    await target.putText(nameOf(day), formatTombstones(await store.listTombstones(day)));
  if (days.length === 0) {
    if (found !== known.token) await store.setTombstoneCopy({ token: found, upTo });
    return;
  }
  const token = randomUUID();
  await target.putText(LATEST, `${JSON.stringify({ token })}\n`);
  await store.setTombstoneCopy({ token, upTo });
}

/** Null: there is no copy. */
async function readLatest(target: ArchiveTarget): Promise<Uuid | null> {
  const text = await target.readText(LATEST);
  if (text === null) return null;
  try {
    const { token } = JSON.parse(text) as { readonly token?: unknown };
    if (typeof token === 'string') return token;
  } catch {
    // Reported below.
  }
  throw new ArchiveError(
    `${LATEST} of the archive ${target.url} cannot be read. Delete it: the next run writes it again.`,
  );
}

async function mergeAll(store: Store, target: ArchiveTarget): Promise<void> {
  for (const name of await target.list(FOLDER)) {
    if (!name.endsWith('.jsonl')) continue;
    try {
      await store.mergeTombstones(parseTombstones((await target.readText(name)) ?? ''));
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new ArchiveError(`${name} of the archive ${target.url} is damaged: ${error.message}`, {
        cause: error,
      });
    }
  }
}
