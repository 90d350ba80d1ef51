/** The catalogue of event types. */
import { checkSchema, checkSize } from '../catalogue/read-schema.ts';
import { isEventType, RESERVED_TYPE_PREFIX } from '../domain/event.ts';
import type { ValidationMode } from '../domain/event-type-version.ts';
import { invalidField, Problem } from '../domain/problem.ts';
import { inTransaction, type Pool } from '../postgres/database.ts';
import {
  deleteEventType,
  type EventTypeRecord,
  type EventTypeSettings,
  lockEventType,
  putEventType,
} from '../postgres/queries/event-types.ts';
import { fieldChanges } from './audit-trail.ts';
import type { Actor } from './caller.ts';
import { dropReadOnly, type ReadOnlyFields } from './sent-back.ts';

export interface EventTypeInput {
  readonly description?: string;
  readonly schema?: Record<string, unknown> | boolean | null;
  readonly example?: unknown;
  readonly deprecated?: boolean;
  readonly validation?: ValidationMode | null;
}

/** What a GET shows beside the settings may be sent back. */
const READ_ONLY: ReadOnlyFields = { asShown: ['name', 'created_at'], ignored: ['updated_at'] };

export class EventTypes {
  readonly #pool: Pool;
  readonly #onChanged: () => Promise<void>;

  /** `onCatalogueChanged`: makes this process read the catalogue again. Others are notified. */
  constructor({
    pool,
    onCatalogueChanged,
  }: {
    readonly pool: Pool;
    readonly onCatalogueChanged: () => Promise<void>;
  }) {
    this.#pool = pool;
    this.#onChanged = onCatalogueChanged;
  }

  /** Creates the event type, or replaces all of its settings. */
  async put(
    actor: Actor,
    name: string,
    input: EventTypeInput,
  ): Promise<{ created: boolean; type: EventTypeRecord }> {
    const after = newEventType(name, input);
    const answer = await inTransaction(this.#pool, async (client) => {
      const before = await lockEventType(client, name);
      dropReadOnly(input, before ?? { name }, READ_ONLY);
      const changes = fieldChanges(
        before === null ? {} : eventTypeFields(before),
        eventTypeFields(after),
        (field) => field !== 'example',
      );
      if (before !== null && changes.length === 0) {
        actor.audit.nothingChanged();
        return { created: false, type: before };
      }
      await actor.audit.record(client, {
        action: before === null ? 'event_type.create' : 'event_type.update',
        tenant: null,
        objectId: name,
        changes,
      });
      return { created: before === null, type: await putEventType(client, after) };
    });
    await this.#onChanged();
    return answer;
  }

  async delete(actor: Actor, name: string): Promise<void> {
    await inTransaction(this.#pool, async (client) => {
      if (!(await deleteEventType(client, name))) throw eventTypeNotFound(name);
      await actor.audit.record(client, { action: 'event_type.delete', tenant: null, objectId: name });
    });
    await this.#onChanged();
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
  if (name.startsWith(RESERVED_TYPE_PREFIX))
    throw invalidField('name', `must not start with "${RESERVED_TYPE_PREFIX}", which is reserved`);
  const { description = '', schema = null, example = null, deprecated = false, validation = null } = input;
  if (example !== null) checkSize(example, 'example');
  if (schema !== null) checkSchema(schema, example);
  return { name, description, schema, example, deprecated, validation };
}

export const eventTypeFields = ({
  description,
  schema,
  example,
  deprecated,
  validation,
}: EventTypeSettings) => ({ description, schema, example, deprecated, validation });
