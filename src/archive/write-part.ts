/** Writes a file to the archive, reads it back and compares it. */
import { unlink } from 'node:fs/promises';
import {
  ArchiveError,
  ArchiveFullError,
  type ArchiveKind,
  isDiskFull,
  partNameOf,
} from '../domain/archive.ts';
import { compareFile } from './part-reader.ts';
import { PartWriter, type WrittenFile } from './part-writer.ts';
import type { ArchiveTarget } from './targets/target.ts';

/** The steps of a part, in order. Tests kill the process before each. */
export type PartStep = 'write' | 'put' | 'verify' | 'record';

export interface PartToWrite<K extends ArchiveKind> {
  readonly kind: K;
  readonly day: string;
  readonly part: number;
  /** Adds the rows. */
  readonly fill: (writer: PartWriter<K>) => Promise<void>;
}

export interface PartWriteOptions {
  readonly onStep?: (step: PartStep) => void;
  /** Called between the row groups that are read back. */
  readonly rest?: () => Promise<void>;
}

export async function writePart<K extends ArchiveKind>(
  target: ArchiveTarget,
  { kind, day, part, fill }: PartToWrite<K>,
  { onStep = () => {}, rest }: PartWriteOptions = {},
): Promise<WrittenFile> {
  const name = partNameOf({ kind, day, part });
  onStep('write');
  const path = await target.spoolPath();
  const written = await fillFile(kind, path, fill);
  try {
    onStep('put');
    await target.put(name, path);
  } catch (error) {
    await unlink(path).catch(() => {});
    throw error;
  }
  onStep('verify');
  await target.withFile(name, (file) => compareFile(kind, { name, path: file, expected: written, rest }));
  onStep('record');
  return written;
}

async function fillFile<K extends ArchiveKind>(
  kind: K,
  path: string,
  fill: (writer: PartWriter<K>) => Promise<void>,
): Promise<WrittenFile> {
  let writer: PartWriter<K> | null = null;
  try {
    writer = new PartWriter(kind, path);
    await fill(writer);
    return writer.finish();
  } catch (error) {
    try {
      writer?.abandon();
    } catch {
      // It was closed already.
    }
    await unlink(path).catch(() => {});
    throw explainFileError(error);
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: 'The disk is full',
  EDQUOT: 'The quota is used up',
  EROFS: 'The file system is read-only',
  EACCES: 'This user may not write there',
};

function explainFileError(error: unknown): unknown {
  const { code = '', path } = error as NodeJS.ErrnoException;
  const reason = REASONS[code];
  if (reason === undefined || error instanceof ArchiveError) return error;
  const Kind = isDiskFull(error) ? ArchiveFullError : ArchiveError;
  return new Kind(`The archive cannot be written${path === undefined ? '' : ` at ${path}`}: ${reason}.`, {
    cause: error,
  });
}
