import { statfs } from 'node:fs/promises';
import { EmbeddedPostgresError, errorCode, OWN_SERVER_HINT } from './errors.ts';

/** The server cannot work with less free space: one WAL segment is 16 MB. */
const DISK_FULL_BELOW_BYTES = 16 * 1024 * 1024;

const DISK_FULL_HINT =
  'Free some space there and start again; nothing that was accepted is lost. Posthorn needs about 100 MB to begin with.';

/**
 * PostgreSQL reports the reason of a failed start only as text. The text is English, because the server runs with
 * LC_ALL=C.
 */
const SIGNS_OF_FULL_DISK = /No space left on device|Disk quota exceeded|Check free disk space/;
const SIGNS_OF_DAMAGE = new RegExp(
  [
    'incorrect checksum in control file',
    'could not (open|read|stat|locate) .*(pg_control|PG_VERSION|checkpoint record|"(base|global|pg_\\w+)\\b)',
    'valid checkpoint record',
    'database files are incompatible',
    'not a valid data directory',
    'bogus data in',
    'byte ordering',
  ].join('|'),
);

/** Turns what initdb or postgres printed before it ended into an error that says what to do. */
export async function explainServerFailure(
  what: string,
  output: string,
  place: { dir: string; log?: string; isNew?: boolean },
): Promise<EmbeddedPostgresError> {
  const reasons = output.split('\n').filter((line) => !/shared memory|Permission denied/.test(line));
  const sentences = [
    output.trim() && `PostgreSQL says:\n${lastLines(output)}`,
    place.log && `Its log is ${place.log}`,
  ];
  const details = sentences.filter(Boolean).join('\n');
  // A full disk often has no space for the log line about it, so check the file system as well.
  if (reasons.some((line) => SIGNS_OF_FULL_DISK.test(line)) || (await isDiskFull(place.dir))) {
    return new EmbeddedPostgresError(
      'disk_full',
      `${what}: no space left on the disk of ${place.dir}. ${details}`,
      DISK_FULL_HINT,
    );
  }
  if (!place.isNew && reasons.some((line) => SIGNS_OF_DAMAGE.test(line))) {
    return new EmbeddedPostgresError(
      'damaged',
      `The database in ${place.dir} cannot be opened. ${details}`,
      'Posthorn does not touch it. Restore the directory from a backup; or move it away to begin with an empty database.',
    );
  }
  return new EmbeddedPostgresError('start_failed', `${what}. ${details}`, OWN_SERVER_HINT);
}

/** Does the same for a failed file operation of Posthorn itself. Returns other errors unchanged. */
export function explainFileError(error: unknown, dataDir: string): unknown {
  const reason = error instanceof Error ? error.message : String(error);
  switch (errorCode(error)) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new EmbeddedPostgresError(
        'disk_full',
        `No space left on the disk of ${dataDir} (${reason}).`,
        DISK_FULL_HINT,
        { cause: error },
      );
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new EmbeddedPostgresError(
        'no_permission',
        `The data directory ${dataDir} cannot be used by this user (${reason}).`,
        `Start Posthorn as the user who owns it, or name another data directory. ${OWN_SERVER_HINT}`,
        { cause: error },
      );
    case 'ENOTDIR':
    case 'EEXIST':
    case 'ELOOP':
      return new EmbeddedPostgresError(
        'start_failed',
        `The data directory ${dataDir} cannot be used: something that is not a directory is in its place (${reason}).`,
        'Name another data directory, or move the existing file away.',
        { cause: error },
      );
    default:
      return error;
  }
}

async function isDiskFull(dir: string): Promise<boolean> {
  try {
    const disk = await statfs(dir);
    return disk.bavail * disk.bsize < DISK_FULL_BELOW_BYTES;
  } catch {
    return false;
  }
}

function lastLines(output: string, count = 12): string {
  return output.trim().split('\n').slice(-count).join('\n');
}
