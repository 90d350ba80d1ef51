/** `posthorn archive ls`, `verify` and `query`: they need the archive and nothing else. */
import pg from 'pg';
import { openTarget, readManifests, searchDay, verifyDay } from '../../archive/index.ts';
import { type ArchiveKind, dayOf, isDay } from '../../domain/archive.ts';
import { idPrefixes, parsePublicId, timeOfId } from '../../domain/ids.ts';
import { partitionedTables } from '../../domain/retention.ts';
import { readArchiveBacklog } from '../../postgres/queries/archive.ts';
import type { Arguments } from '../arguments.ts';
import { print, printError } from '../print.ts';
import { UsageError } from '../usage-error.ts';

export interface ArchivePlace {
  readonly url: string;
  readonly pathStyle: boolean | null;
}

interface Filter {
  readonly kind: ArchiveKind | undefined;
  readonly day: string | undefined;
  readonly columns: Readonly<Record<string, string>>;
}

/** Columns that the options `--tenant` and `--type` select. */
const COLUMN_OF_TYPE: Readonly<Record<ArchiveKind, string | null>> = {
  events: 'type',
  deliveries: 'event_type',
  attempts: null,
};

function filterOf({ options }: Arguments): Filter {
  const { kind, day, event, tenant } = options;
  if (kind !== undefined && !(partitionedTables as readonly string[]).includes(kind))
    throw new UsageError(`--kind must be one of ${partitionedTables.join(', ')}, not "${kind}".`);
  if (day !== undefined && !isDay(day))
    throw new UsageError(`--day must be a day such as 2026-11-15, not "${day}".`);
  const eventId = event === undefined ? undefined : parsePublicId(idPrefixes.event, event);
  if (eventId === null) throw new UsageError(`--event must be the id of an event (evt_…), not "${event}".`);
  return {
    kind: kind as ArchiveKind | undefined,
    day: day ?? (eventId === undefined ? undefined : dayOf(timeOfId(eventId))),
    columns: { ...(tenant !== undefined && { tenant }) },
  };
}

const open = ({ url, pathStyle }: ArchivePlace) => openTarget(url, { pathStyle });

/** `databaseUrl` null: it lists the archive only. Otherwise it also says, on stderr, what is not in it yet and why. */
export async function listArchive(
  place: ArchivePlace,
  args: Arguments,
  databaseUrl: string | null,
): Promise<number> {
  const manifests = await readManifests(open(place), filterOf(args));
  if (args.wantsJson) print(JSON.stringify(manifests, null, 2));
  else if (manifests.length === 0) print(`${place.url} contains nothing yet.`);
  else
    for (const { kind, day, rows, bytes, files } of manifests)
      print(
        `${day}  ${kind.padEnd(10)}  ${String(rows).padStart(12)} rows  ${String(bytes).padStart(14)} bytes  ${files.length} files`,
      );
  if (databaseUrl !== null) await printBacklog(databaseUrl);
  return 0;
}

async function printBacklog(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString, application_name: 'posthorn archive ls' });
  try {
    await client.connect();
    const { partitions, failedAt, error } = await readArchiveBacklog(client);
    if (partitions > 0)
      printError(
        partitions === 1
          ? '1 partition waits to be archived. Posthorn deletes it only after that.'
          : `${partitions} partitions wait to be archived. Posthorn deletes them only after that.`,
      );
    if (error !== null)
      printError(`! Archiving has failed since ${failedAt?.toISOString() ?? 'its start'}: ${error}`);
  } catch (error) {
    printError(`Cannot count the partitions that wait to be archived: ${(error as Error).message}`);
  } finally {
    await client.end().catch(() => {});
  }
}

export async function verifyArchive(place: ArchivePlace, args: Arguments): Promise<number> {
  const target = open(place);
  let wrong = 0;
  for (const manifest of await readManifests(target, filterOf(args))) {
    const problems = await verifyDay(target, manifest);
    for (const problem of problems) printError(`✗ ${problem}`);
    if (problems.length === 0) print(`✓ ${manifest.kind} ${manifest.day}: ${manifest.rows} rows`);
    wrong += problems.length;
  }
  return wrong === 0 ? 0 : 1;
}

export async function queryArchive(place: ArchivePlace, args: Arguments): Promise<number> {
  const target = open(place);
  const { kind = 'events', day, columns } = filterOf(args);
  const { event, type } = args.options;
  const ofType = COLUMN_OF_TYPE[kind];
  if (day === undefined) throw new UsageError('Say which day: --day 2026-11-15, or --event evt_….');
  if (type !== undefined && ofType === null) throw new UsageError(`${kind} have no type.`);
  const wanted = {
    ...columns,
    ...(type !== undefined && { [ofType!]: type }),
    ...(event !== undefined && { [kind === 'events' ? 'id' : 'event_id']: event }),
  };
  let found = 0;
  for (const manifest of await readManifests(target, { kind, day }))
    await searchDay(target, manifest, { columns: wanted }, (row) => {
      print(JSON.stringify(row));
      found += 1;
    });
  if (found === 0) printError('Nothing matches.');
  return found === 0 ? 1 : 0;
}
