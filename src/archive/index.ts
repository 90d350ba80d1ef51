/** The archive: Parquet files of expired data. `posthorn archive run` writes them: a person starts it, or a server as a child process. */
export { type ExportStep, exportPartition } from './export-partition.ts';
export { readManifests, searchDay, verifyDay } from './inspect.ts';
export { ExportPace, type PaceOptions } from './pace.ts';
export { type ArchiveRunOptions, runArchive } from './run.ts';
export { openTarget } from './targets/open-target.ts';
export type { ArchiveTarget } from './targets/target.ts';
