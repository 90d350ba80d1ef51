import type { ArchiveStatus } from '../../postgres/queries/archive.ts';
import { type Finding, ok, warning } from './finding.ts';

/** Says whether expired data is archived before it is deleted, and what keeps it from being archived. */
export function judgeArchive({ isRequired, error }: ArchiveStatus, url: string | null): Finding {
  const check = 'Archive';
  if (isRequired && url === null)
    return warning(
      check,
      'A server archives expired data before it is deleted, but POSTHORN_ARCHIVE_URL is not set here. Servers without it delete only what another server has archived.',
      'Set POSTHORN_ARCHIVE_URL to the same archive on every server. If no server has an archive any more, run `posthorn archive off`; until then no expired partition is dropped.',
    );
  if (isRequired && error !== null)
    return warning(check, `${error} Nothing that is not archived is deleted.`, 'Make the archive writable.');
  if (url === null) return ok(check, 'none: expired data is deleted');
  return ok(
    check,
    `expired data is archived at ${url}${isRequired ? '' : ' as soon as a server has started with this setting'}`,
  );
}
