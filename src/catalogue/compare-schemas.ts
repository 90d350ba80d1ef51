/**
 * VER-3: decides whether a consumer that was written against an old schema can read every payload of a new one.
 *
 * A change is additive if every payload that is valid under the new schema is valid under the old one, read as open:
 * `additionalProperties: false` of the old schema is ignored, because consumers ignore fields that they do not know. What
 * cannot be decided is breaking.
 *
 * `Inclusion` finds the places where the new schema allows more than the old one: these break consumers. The other direction
 * finds where it allows less: these changes are additive, and are listed for people to read. A field that was removed is
 * breaking even if it was optional.
 */
import type { NormalizedSchema } from './normalize-schema.ts';
import { Inclusion, type Violation } from './schema-inclusion.ts';

export type ChangeKind =
  | 'added'
  | 'removed'
  | 'renamed'
  | 'type_changed'
  | 'type_narrowed'
  | 'required'
  | 'optional'
  | 'enum_narrowed'
  | 'enum_widened'
  | 'tightened'
  | 'loosened'
  | 'undecided';

export interface SchemaChange {
  /** Such as `lines[].sku`. Empty: the payload itself. */
  readonly path: string;
  readonly kind: ChangeKind;
  readonly breaking: boolean;
  readonly message: string;
}

export interface SchemaDifference {
  readonly verdict: 'additive' | 'breaking';
  readonly changes: readonly SchemaChange[];
  /** How to make the changes safely. Empty: there are none. */
  readonly advice: readonly string[];
}

const MAX_CHANGES = 200;

/** What an additive change is called, by the violation that the opposite direction reports. */
const MIRRORED: Readonly<Record<Violation['kind'], ChangeKind>> = {
  removed: 'added',
  type_changed: 'type_narrowed',
  optional: 'required',
  enum_widened: 'enum_narrowed',
  loosened: 'tightened',
  undecided: 'tightened',
};

const ADDITIVE_ADVICE = 'Publish it at once: no receiver of the old version breaks.';
const ADVICE: Readonly<Partial<Record<ChangeKind, string>>> = {
  renamed:
    'Rename by dual write: publish the old and the new field side by side, deprecate the old one, and remove it after its sunset.',
  removed: 'Deprecate the field first, give it a sunset, and remove it in a new version after that.',
  type_changed: 'Add a new field with the new type, or make a new version.',
  optional: 'Keep the field required, or make a new version.',
  enum_widened: 'Tell consumers about the new values first, or make a new version.',
  loosened: 'Keep the constraint, or make a new version.',
  undecided: 'Posthorn cannot compare this part: keep it as it is, or make a new version.',
};

/** Compares two schemas. Null: the version has no schema, which allows everything. */
export function compareSchemas(
  before: NormalizedSchema | null,
  after: NormalizedSchema | null,
): SchemaDifference {
  const [old, fresh] = [before ?? ANYTHING, after ?? ANYTHING];
  const broken = new Inclusion({ inner: fresh, outer: old, isOuterOpen: true }).find();
  const narrowed = new Inclusion({ inner: old, outer: fresh, isOuterOpen: false }).find();
  const renamed = findRenamed(broken, narrowed);
  const breaking = broken.map((violation): SchemaChange => {
    const to = renamed.get(violation.path);
    if (violation.kind !== 'removed' || to === undefined) return { ...toChange(violation), breaking: true };
    return { path: violation.path, kind: 'renamed', breaking: true, message: `was renamed to ${to}` };
  });
  const brokenAt = new Set(broken.map(({ path }) => path));
  const targets = new Set(renamed.values());
  const additive = narrowed
    .filter(({ path, kind }) => !targets.has(path) && (kind === 'removed' || !brokenAt.has(path)))
    .map(
      ({ path, kind, opposite }): SchemaChange => ({
        path,
        kind: MIRRORED[kind],
        breaking: false,
        message: opposite,
      }),
    );
  const changes = unique([...breaking, ...additive]);
  const isAdditive = breaking.length === 0;
  return {
    verdict: isAdditive ? 'additive' : 'breaking',
    changes: changes.slice(0, MAX_CHANGES),
    advice: isAdditive ? changes.slice(0, 1).map(() => ADDITIVE_ADVICE) : adviceOn(changes),
  };
}

const ANYTHING: NormalizedSchema = { root: true, definitions: new Map() };

const toChange = ({ path, kind, message }: Violation) => ({ path, kind, message });

const adviceOn = (changes: readonly SchemaChange[]): string[] => [
  ...new Set(changes.flatMap(({ kind, breaking }) => (breaking && ADVICE[kind]) || [])),
];

function unique(changes: readonly SchemaChange[]): SchemaChange[] {
  const pathsOf = (...kinds: ChangeKind[]) =>
    new Set(changes.filter(({ kind }) => kinds.includes(kind)).map(({ path }) => path));
  const removed = pathsOf('removed', 'renamed');
  const added = pathsOf('added');
  const listed = changes.filter(
    ({ path, kind }) =>
      !((kind === 'optional' && removed.has(path)) || (kind === 'required' && added.has(path))),
  );
  return [...new Map(listed.map((change) => [`${change.path}\n${change.kind}`, change])).values()];
}

/** A field is probably renamed if exactly one was removed and one with the same schema was added beside it. */
function findRenamed(broken: readonly Violation[], narrowed: readonly Violation[]): Map<string, string> {
  const renamed = new Map<string, string>();
  const removed = broken.filter(({ kind }) => kind === 'removed');
  const added = narrowed.filter(({ kind }) => kind === 'removed');
  for (const field of removed) {
    const isSame = (other: Violation): boolean =>
      other.parent === field.parent && other.schemaText === field.schemaText;
    const candidates = added.filter(isSame);
    if (candidates.length === 1 && removed.filter(isSame).length === 1)
      renamed.set(field.path, candidates[0]!.path);
  }
  return renamed;
}
