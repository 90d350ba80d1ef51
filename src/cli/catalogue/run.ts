import { readFile, writeFile } from 'node:fs/promises';
import { parse, stringify } from 'yaml';
import { compareSchemas } from '../../catalogue/compare-schemas.ts';
import {
  type CatalogueFile,
  readCatalogue,
  type TypeEntry,
  type VersionEntry,
  withoutDefaults,
} from '../../catalogue/documents/catalogue-file.ts';
import { writeTypes } from '../../catalogue/documents/write-types.ts';
import { readSchema } from '../../catalogue/read-schema.ts';
import { Problem } from '../../domain/problem.ts';
import { parseTime } from '../../domain/time.ts';
import { newEventType } from '../../manage/event-types.ts';
import type { Arguments } from '../arguments.ts';
import { print, printError } from '../print.ts';
import { detailOf, ServerApi } from '../server-api.ts';
import { UsageError } from '../usage-error.ts';

/** Runs one of the actions. Returns the exit code. */
export async function runCatalogue(args: Arguments, usage: string): Promise<number> {
  const [, action, file] = args.positionals;
  if (action === 'pull') return pull(args, file);
  if (action === 'types') return types(args, file);
  if (file === undefined || (action !== 'push' && action !== 'diff')) throw new UsageError(`Usage: ${usage}`);
  return action === 'push' ? push(args, file) : diff(args, file);
}

async function pull(args: Arguments, file: string | undefined): Promise<number> {
  const contents = await readServer(await ServerApi.open(args));
  const isJson = args.wantsJson || file?.endsWith('.json') === true;
  const text = isJson ? `${JSON.stringify(contents, null, 2)}\n` : stringify(contents);
  if (file === undefined) print(text.trimEnd());
  else await writeFile(file, text);
  return 0;
}

async function types(args: Arguments, file: string | undefined): Promise<number> {
  const { event_types } =
    file === undefined ? await readServer(await ServerApi.open(args)) : await readFrom(file);
  const versions = Object.entries(event_types).flatMap(([name, type]) => {
    const own = Object.entries(type.versions ?? {}).filter(([, { status }]) => status !== 'draft');
    const entries: [string | null, VersionEntry][] = own.length === 0 ? [[null, type]] : own;
    return entries.map(([version, entry]) => ({ name, version, schema: normalizedOf(entry) }));
  });
  print(writeTypes(versions).trimEnd());
  return 0;
}

async function push(args: Arguments, file: string): Promise<number> {
  const wanted = await readFrom(file);
  const server = await ServerApi.open(args);
  let failures = 0;
  const put = async (address: string, shown: string, body: object): Promise<void> => {
    const answer = await server.call('PUT', address, body);
    if (answer.ok) return print(`${answer.status === 201 ? 'created' : 'put'} ${shown}`);
    failures += 1;
    printError(`${shown}: ${await detailOf(answer)}`);
  };
  for (const [name, { versions = {}, ...type }] of Object.entries(wanted.event_types)) {
    await put(addressOf(name), name, type);
    for (const [version, entry] of Object.entries(versions))
      await put(addressOf(name, version), `${name} ${version}`, entry);
  }
  return failures === 0 ? 0 : 1;
}

async function diff(args: Arguments, file: string): Promise<number> {
  const wanted = await readFrom(file);
  const server = await ServerApi.open(args);
  const known = new Map(Object.entries((await readServer(server)).event_types));
  let refusals = 0;
  const printRefusal = (reason: string | null): void => {
    if (reason === null) return;
    refusals += 1;
    print(`    refused: ${reason}`);
  };
  for (const [name, type] of Object.entries(wanted.event_types)) {
    const before = known.get(name);
    if (before === undefined) print(`+ ${name}`);
    else if (!isSame(settingsOf(before), settingsOf(type))) print(`~ ${name}`);
    printRefusal(checkType(name, type));
    for (const [version, entry] of Object.entries(type.versions ?? {})) {
      const old = before?.versions?.[version];
      if (old !== undefined && isSame(old, entry)) continue;
      const answer = await server.call('POST', `${addressOf(name, version)}/check`, entry);
      const refusal = answer.ok
        ? ((await answer.json()) as { refusal: string | null }).refusal
        : await detailOf(answer);
      const shown = `${name} ${version}`;
      if (old === undefined) print(`+ ${shown}`);
      else if (answer.ok) printChange(shown, old, entry);
      else print(`~ ${shown}`);
      printRefusal(refusal);
    }
  }
  for (const name of known.keys())
    if (!Object.hasOwn(wanted.event_types, name)) print(`  ${name}: only on the server`);
  return refusals === 0 ? 0 : 1;
}

/** Returns why the server would refuse the settings of the type, or null. */
function checkType(name: string, { versions: _versions, ...settings }: TypeEntry): string | null {
  try {
    newEventType(name, settings);
    return null;
  } catch (error) {
    if (error instanceof Problem) return error.message;
    throw error;
  }
}

function printChange(shown: string, before: VersionEntry, after: VersionEntry): void {
  const { verdict, changes } = compareSchemas(normalizedOf(before), normalizedOf(after));
  print(`~ ${shown}: ${verdict}`);
  for (const { path, message, breaking } of changes)
    print(`    ${breaking ? '!' : ' '} ${path === '' ? 'data' : path} ${message}`);
}

const addressOf = (name: string, version?: string): string => {
  const type = `/v1/event-types/${encodeURIComponent(name)}`;
  return version === undefined ? type : `${type}/versions/${encodeURIComponent(version)}`;
};

const settingsOf = ({ versions: _versions, ...settings }: TypeEntry): object => settings;

/** The server writes times its own way: `2027-01-31T00:00:00Z` in a file is the same as `2027-01-31T00:00:00.000Z`. */
const withSunset = ({ sunset_at = null }: { readonly sunset_at?: string | null }) => {
  const time = sunset_at === null ? Number.NaN : parseTime(sunset_at);
  return { sunset_at: Number.isNaN(time) ? sunset_at : new Date(time).toISOString() };
};

const isSame = (one: object, other: object): boolean => {
  const text = (entry: object): string =>
    JSON.stringify(
      Object.entries(withoutDefaults({ ...entry, ...withSunset(entry) })).toSorted(([a], [b]) =>
        a < b ? -1 : 1,
      ),
    );
  return text(one) === text(other);
};

const normalizedOf = ({ schema = null }: VersionEntry | TypeEntry) =>
  schema === null ? null : readSchema(schema, 'schema');

async function readFrom(file: string): Promise<CatalogueFile> {
  try {
    // JSON is YAML.
    return readCatalogue(parse(await readFile(file, 'utf8')));
  } catch (error) {
    throw new UsageError(`${file}: ${(error as Error).message}`);
  }
}

interface ShownType extends TypeEntry {
  readonly name: string;
}
interface ShownVersion extends VersionEntry {
  readonly version: string;
}

async function readServer(server: ServerApi): Promise<CatalogueFile> {
  const found: Record<string, TypeEntry> = {};
  const listed = await server.list<ShownType>('/v1/event-types');
  for (const {
    name,
    description,
    schema,
    example,
    deprecated,
    sunset_at,
    validation,
  } of listed.toReversed()) {
    const { data } = await server.get<{ data: ShownVersion[] }>(`${addressOf(name)}/versions`);
    const versions = data.toReversed().map((each) => [each.version, entryOf(each)] as const);
    found[name] = {
      ...withoutDefaults({ description, schema, example, deprecated, sunset_at, validation }),
      ...(versions.length > 0 && { versions: Object.fromEntries(versions) }),
    };
  }
  return { event_types: found };
}

const entryOf = ({
  description,
  changelog,
  schema,
  example,
  status,
  sunset_at,
}: ShownVersion): VersionEntry =>
  withoutDefaults({ description, changelog, schema, example, status, sunset_at });
