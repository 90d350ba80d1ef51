/** The catalogue of event types. */
import { checkSchema, checkSize } from '../catalogue/read-schema.ts';
import { isEventType, RESERVED_TYPE_PREFIX } from '../domain/event.ts';
import type { ValidationMode } from '../domain/event-type-version.ts';
import { invalidField, Problem } from '../domain/problem.ts';
import { parseTime, TIME_RULE } from '../domain/time.ts';
import {
  deleteEventType,
  type EventTypeRecord,
  type EventTypeSettings,
  lockEventType,
  putEventType,
} from '../postgres/queries/event-types.ts';
import type { Actor } from './caller.ts';
import { type CatalogueOptions, changeCatalogue } from './catalogue-changes.ts';
import { dropReadOnly, type ReadOnlyFields } from './read-only-fields.ts';

export interface EventTypeInput {
  readonly description?: string;
  readonly schema?: Record<string, unknown> | boolean | null;
  readonly example?: unknown;
  readonly deprecated?: boolean;
  readonly sunset_at?: string | null;
  readonly validation?: ValidationMode | null;
}

/** Fields that GET shows in addition to the settings. A PUT may repeat them. */
const READ_ONLY: ReadOnlyFields = {
  asShown: ['name', 'created_at'],
  ignored: ['latest_version', 'updated_at'],
};

export class EventTypes {
  readonly #options: CatalogueOptions;

  constructor(options: CatalogueOptions) {
    this.#options = options;
  }

  /** Creates the event type, or replaces all of its settings. */
  async put(
    actor: Actor,
    name: string,
    input: EventTypeInput,
  ): Promise<{ created: boolean; type: EventTypeRecord }> {
    const after = newEventType(name, input);
    return changeCatalogue(this.#options, async (client) => {
      const before = await lockEventType(client, name);
      dropReadOnly(input, before ?? { name }, READ_ONLY);
      const isChanged = await actor.audit.recordReplacement(client, {
        before: before && eventTypeFields(before),
        after: eventTypeFields(after),
        tenant: null,
        objectId: name,
        hiddenField: 'example',
        create: 'event_type.create',
        update: 'event_type.update',
      });
      if (before !== null && !isChanged) return { created: false, type: before };
      return { created: before === null, type: await putEventType(client, after) };
    });
  }

  async delete(actor: Actor, name: string): Promise<void> {
    await changeCatalogue(this.#options, async (client) => {
      if (!(await deleteEventType(client, name))) throw eventTypeNotFound(name);
      await actor.audit.record(client, { action: 'event_type.delete', tenant: null, objectId: name });
    });
  }
}

export const eventTypeNotFound = (name: string) =>
  new Problem('not_found', `There is no event type ${name}.`);

/** Throws `invalid` if the name or a setting is not valid. */
export function newEventType(name: string, input: EventTypeInput): EventTypeSettings {
  if (!isEventType(name))
    throw invalidField(
      'name',
      'must be segments of letters, digits, _ or - with dots between them, at most 128 characters',
    );
  // Documents have the types as fields of an object. Setting this one changes the prototype instead.
  if (name === '__proto__') throw invalidField('name', 'must not be "__proto__"');
  if (name.startsWith(RESERVED_TYPE_PREFIX))
    throw invalidField('name', `must not start with "${RESERVED_TYPE_PREFIX}", which is reserved`);
  const { description = '', schema = null, example = null, deprecated = false, validation = null } = input;
  if (example !== null) checkSize(example, 'example');
  if (schema !== null) checkSchema(schema, example);
  const sunset_at = readSunset(input.sunset_at ?? null);
  return { name, description, schema, example, deprecated, sunset_at, validation };
}

/** Throws `invalid` if the text is not a time. */
export function readSunset(text: string | null): Date | null {
  if (text === null) return null;
  const time = parseTime(text);
  if (Number.isNaN(time)) throw invalidField('sunset_at', TIME_RULE);
  return new Date(time);
}

export const eventTypeFields = ({
  description,
  schema,
  example,
  deprecated,
  sunset_at,
  validation,
}: EventTypeSettings) => ({ description, schema, example, deprecated, sunset_at, validation });
