/**
 * One run of the archive process: restores that somebody waits for, then files that must be rewritten, then partitions that
 * retention wants to drop. It runs outside of the servers, so that reading, compressing and hashing do not delay events.
 */
import { ArchiveError, ArchiveFullError } from '../domain/archive.ts';
import type { Uuid } from '../domain/ids.ts';
import type { ArchiveStore, StalePart } from '../ports/archive-store.ts';
import type { Partition } from '../ports/retention-store.ts';
import { isStoreOutage } from '../ports/store-error.ts';
import { copyTombstones } from './copy-tombstones.ts';
import { type ExportStep, exportPartition } from './export-partition.ts';
import { ArchiveStoppedError, type ExportPace } from './pace.ts';
import { runRestore } from './restore.ts';
import { rewritePart } from './rewrite-parts.ts';
import { openTarget } from './targets/open-target.ts';
import type { ArchiveTarget } from './targets/target.ts';

export interface ArchiveRunOptions {
  readonly store: ArchiveStore;
  /** POSTHORN_ARCHIVE_URL. */
  readonly url: string;
  readonly pathStyle?: boolean | null;
  readonly runner: Uuid;
  /** Takes over restores whose process was silent for this long. */
  readonly silentMs: number;
  readonly restoreKeepMs: number;
  /** Slows exports down and stops the run. Restores and rewrites do not rest: a person waits for them, or a deadline. */
  readonly pace: ExportPace;
  /** Called before each step of an export. Tests kill the process here. */
  readonly onStep?: ((step: ExportStep) => void) | undefined;
  readonly onExported: (exported: {
    readonly partition: string;
    readonly rows: number;
    readonly bytes: number;
  }) => void;
  readonly onVerified: (verified: { readonly partition: string; readonly rows: number }) => void;
  readonly onRewritten: (part: StalePart) => void;
}

/** The name of the file that says which deployment an archive belongs to. */
export const OWNER_FILE = 'archive.json';

/**
 * Returns false if another process works on the archive. Throws the first error if something of the archive cannot be written or
 * read; the store records the reason.
 */
export async function runArchive(options: ArchiveRunOptions): Promise<boolean> {
  const { store, pace } = options;
  return store.runExclusively(async () => {
    let failure: Failure | null = null;
    /** A failure does not stop the rest of the work, unless the store is unavailable: all work needs it. */
    const attempt = async (partition: string | null, work: () => Promise<void>): Promise<void> => {
      try {
        if (!pace.isStopped) await work();
      } catch (error) {
        if (error instanceof ArchiveStoppedError) return;
        if (isStoreOutage(error)) throw error;
        failure ??= { partition, error: error as Error };
      }
    };
    await attempt(null, async () => {
      const target = openTarget(options.url, { pathStyle: options.pathStyle ?? null });
      await claimArchive(store, target);
      // Do this first: a restored database must not archive data that was expunged since its backup.
      await attempt(null, () => copyTombstones(store, target));
      const restore = () => attempt(null, () => runRestores(options, target));
      await restore();
      for (const part of await store.listStaleParts())
        await attempt(part.partition, () =>
          rewritePart(part, { store, target, onRewritten: options.onRewritten }),
        );
      for (const partition of await store.listRequested()) {
        // The other partitions would not fit either. The next run continues.
        if (failure?.error instanceof ArchiveFullError) break;
        // Somebody may request a restore meanwhile.
        await attempt(partition.name, () => exportOne(partition, options, target, restore));
        await restore();
      }
    });
    // A run that was stopped does not know whether the rest would have succeeded.
    if (failure !== null || !pace.isStopped) await reportFailure(store, failure);
  });
}

interface Failure {
  readonly partition: string | null;
  readonly error: Error;
}

async function reportFailure(store: ArchiveStore, failure: Failure | null): Promise<void> {
  await store.setFailure(failure && { partition: failure.partition, message: failure.error.message });
  if (failure !== null) throw failure.error;
}

async function exportOne(
  partition: Partition,
  options: ArchiveRunOptions,
  target: ArchiveTarget,
  betweenParts: () => Promise<void>,
): Promise<void> {
  const { store } = options;
  const { name } = partition;
  const rows = await exportPartition(partition, {
    store,
    target,
    rest: () => options.pace.rest(),
    betweenParts,
    onStep: options.onStep,
    onProgress: (exported) => options.onExported({ partition: name, ...exported }),
  });
  options.onVerified({ partition: name, rows });
}

async function runRestores(
  { store, runner, silentMs, restoreKeepMs, pace }: ArchiveRunOptions,
  target: ArchiveTarget,
): Promise<void> {
  while (!pace.isStopped) {
    const task = await store.claimRestore(runner, silentMs);
    if (task === null) return;
    await runRestore(task, { store, target, keepMs: restoreKeepMs });
  }
}

/** Two deployments would overwrite each other's files: the first one owns the archive. */
async function claimArchive(store: ArchiveStore, target: ArchiveTarget): Promise<void> {
  const id = await store.readDeploymentId();
  const text = await target.readText(OWNER_FILE);
  if (text === null) {
    const owner = JSON.stringify({ deployment_id: id });
    // The archive is empty, although files are recorded in it: a disk may not be mounted.
    if (await store.hasParts(target.url))
      throw new ArchiveError(
        `The archive ${target.url} has no ${OWNER_FILE}, although files were written to it. Mount it, or bring its files back. If they are lost, create ${OWNER_FILE} with the content ${owner}.`,
      );
    await target.putText(OWNER_FILE, `${owner}\n`);
    return;
  }
  if (!text.includes(id))
    throw new ArchiveError(
      `The archive ${target.url} belongs to another deployment. Set POSTHORN_ARCHIVE_URL to a directory or prefix of its own.`,
    );
}
