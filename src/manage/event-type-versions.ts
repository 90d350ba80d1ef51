/** Versions of event types: each has a schema, an example and a state. Their order is the order of their creation. */
import { compareSchemas, type SchemaDifference } from '../catalogue/compare-schemas.ts';
import { readSchema } from '../catalogue/read-schema.ts';
import {
  isVersionName,
  latestVersion,
  VERSION_RULE,
  type VersionStatus,
} from '../domain/event-type-version.ts';
import { invalidField, Problem } from '../domain/problem.ts';
import type { Client, Queryable } from '../postgres/database.ts';
import {
  type EventTypeVersionRecord,
  type EventTypeVersionSettings,
  listEventTypeVersions,
  putEventTypeVersion,
} from '../postgres/queries/event-type-versions.ts';
import { findEventType, lockEventType, putEventType } from '../postgres/queries/event-types.ts';
import type { Actor } from './caller.ts';
import { type CatalogueOptions, changeCatalogue } from './catalogue-changes.ts';
import { eventTypeNotFound, newEventType, readSunset } from './event-types.ts';
import { dropReadOnly, type ReadOnlyFields } from './read-only-fields.ts';

export interface EventTypeVersionInput {
  readonly description?: string;
  readonly changelog?: string;
  readonly schema?: Record<string, unknown> | boolean | null;
  readonly example?: unknown;
  readonly status?: VersionStatus;
  readonly sunset_at?: string | null;
}

/** A version and whether it is the latest one of its type. */
export interface ListedVersion {
  readonly version: EventTypeVersionRecord;
  readonly isLatest: boolean;
}

/** The answer to a change. */
export interface StoredVersion extends ListedVersion {
  readonly created: boolean;
  /** The comparison with the previous version. Null: this is the first. */
  readonly compatibility: Compatibility | null;
}

export interface Compatibility extends SchemaDifference {
  readonly against: string;
}

const MAX_VERSIONS = 100;

/** Fields that GET shows in addition to the settings. A PUT may repeat them. */
const READ_ONLY: ReadOnlyFields = {
  asShown: ['event_type', 'version', 'created_at'],
  ignored: ['latest', 'compatibility', 'updated_at'],
};

export class EventTypeVersions {
  readonly #options: CatalogueOptions;

  constructor(options: CatalogueOptions) {
    this.#options = options;
  }

  /** Creates the version, or replaces all of its settings. Creates the event type if the catalogue does not have it. */
  async put(
    actor: Actor,
    name: string,
    version: string,
    input: EventTypeVersionInput,
  ): Promise<StoredVersion> {
    const after = toSettings(name, version, input);
    return changeCatalogue(this.#options, async (client) => {
      await ensureEventType(client, actor, name);
      const versions = await listEventTypeVersions(client, name);
      const before = versions.find((each) => each.version === version) ?? null;
      dropReadOnly(input, before ?? { event_type: name, version }, READ_ONLY);
      const refusal = findRefusal(versions, before, after);
      if (refusal !== null) throw refusal;
      const compatibility = compareWithPrevious(versions, after);
      const isChanged = await actor.audit.recordReplacement(client, {
        before: before && versionFields(before),
        after: versionFields(after),
        tenant: null,
        objectId: `${name}@${version}`,
        hiddenField: 'example',
        create: 'event_type.create_version',
        update: 'event_type.update_version',
      });
      if (before !== null && !isChanged)
        return {
          created: false,
          version: before,
          isLatest: latestVersion(versions) === before,
          compatibility,
        };
      const stored = await putEventTypeVersion(client, after);
      const all = versions.filter((each) => each !== before).concat(stored);
      const latest = latestVersion(all.toSorted((one, other) => one.ordinal - other.ordinal));
      return { created: before === null, version: stored, isLatest: latest === stored, compatibility };
    });
  }
}

/** Lists the versions of an event type in the order of their creation. Throws `not_found` if there is no such type. */
export async function readVersions(queryable: Queryable, name: string): Promise<ListedVersion[]> {
  const versions = await listEventTypeVersions(queryable, name);
  if (versions.length === 0 && (await findEventType(queryable, name)) === null) throw eventTypeNotFound(name);
  const latest = latestVersion(versions);
  return versions.map((version) => ({ version, isLatest: version === latest }));
}

/** Throws `not_found` if there is no such version. */
export async function readVersion(
  queryable: Queryable,
  name: string,
  version: string,
): Promise<ListedVersion> {
  const found = (await readVersions(queryable, name)).find((each) => each.version.version === version);
  if (found === undefined) throw new Problem('not_found', `${name} has no version ${version}.`);
  return found;
}

/** Compares the schemas of two versions. Throws `not_found` if one of them does not exist. */
export async function diffVersions(
  queryable: Queryable,
  name: string,
  from: string,
  to: string,
): Promise<SchemaDifference> {
  const [before, after] = [await readVersion(queryable, name, from), await readVersion(queryable, name, to)];
  return compare(before.version, after.version);
}

/** What `put` would do, without doing it. */
export interface CheckedVersion {
  /** Why the change would be refused. Null: it would be stored. */
  readonly refusal: string | null;
  readonly compatibility: Compatibility | null;
}

/** Checks a version that is not stored. Throws `invalid` for a schema, an example or a name that is invalid. */
export async function checkVersion(
  queryable: Queryable,
  name: string,
  version: string,
  input: EventTypeVersionInput,
): Promise<CheckedVersion> {
  const after = toSettings(name, version, input);
  const versions = await listEventTypeVersions(queryable, name);
  const before = versions.find((each) => each.version === version) ?? null;
  return {
    refusal: findRefusal(versions, before, after)?.message ?? null,
    compatibility: compareWithPrevious(versions, after),
  };
}

type WithSchema = Pick<EventTypeVersionSettings, 'schema'>;

const compare = (before: WithSchema, after: WithSchema): SchemaDifference =>
  compareSchemas(normalizedOf(before), normalizedOf(after));

const normalizedOf = ({ schema }: WithSchema) => (schema === null ? null : readSchema(schema, 'schema'));

/** Compares a version with the one that was created before it. */
function compareWithPrevious(
  versions: readonly EventTypeVersionRecord[],
  after: EventTypeVersionSettings,
): Compatibility | null {
  const at = versions.findIndex(({ version }) => version === after.version);
  const previous = at === -1 ? versions.at(-1) : versions[at - 1];
  return previous === undefined ? null : { against: previous.version, ...compare(previous, after) };
}

/** Returns why the change is refused, or null. */
function findRefusal(
  versions: readonly EventTypeVersionRecord[],
  before: EventTypeVersionRecord | null,
  after: EventTypeVersionSettings,
): Problem | null {
  if (before !== null) return findBreaking(before, after);
  if (versions.length < MAX_VERSIONS) return null;
  return new Problem(
    'conflict',
    `${after.event_type} has ${MAX_VERSIONS} versions already, which is the most.`,
  );
}

/** A version that receivers may rely on must not change under them. A draft may. */
function findBreaking(before: EventTypeVersionRecord, after: EventTypeVersionSettings): Problem | null {
  if (before.status === 'draft') return null;
  // As a draft it could be replaced by anything, and be activated again.
  if (after.status === 'draft')
    return new Problem(
      'conflict',
      `${before.event_type} ${before.version} is ${before.status}, so receivers may rely on it: it cannot become a draft again. Make a new version instead.`,
    );
  const { verdict, changes, advice } = compare(before, after);
  if (verdict === 'additive') return null;
  const errors = changes
    .filter(({ breaking }) => breaking)
    .map(({ path, message }) => ({ path: path === '' ? 'schema' : path, message }));
  const list = errors.map(({ path, message }) => `${path} ${message}`).join('; ');
  return new Problem(
    'conflict',
    `The new schema breaks receivers of ${before.event_type} ${before.version}: ${list}. Make a new version instead. ${advice.join(' ')}`,
    { errors },
  );
}

/** Locks the event type. Creates it first if it is new. */
async function ensureEventType(client: Client, actor: Actor, name: string): Promise<void> {
  if ((await lockEventType(client, name)) !== null) return;
  await putEventType(client, newEventType(name, {}));
  await actor.audit.record(client, { action: 'event_type.create', tenant: null, objectId: name });
}

function toSettings(name: string, version: string, input: EventTypeVersionInput): EventTypeVersionSettings {
  if (!isVersionName(version)) throw invalidField('version', VERSION_RULE);
  const { description = '', changelog = '', schema = null, example = null, status = 'active' } = input;
  newEventType(name, { schema, example });
  return {
    event_type: name,
    version,
    description,
    changelog,
    schema,
    example,
    status,
    sunset_at: readSunset(input.sunset_at ?? null),
  };
}

/** The settings under the names of the API. */
export const versionFields = ({
  description,
  changelog,
  schema,
  example,
  status,
  sunset_at,
}: EventTypeVersionSettings) => ({ description, changelog, schema, example, status, sunset_at });
