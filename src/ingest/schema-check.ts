/**
 * Checks payloads against the catalogue when events are accepted.
 *
 *   mode off                   stored, with the type's latest version if the event names none
 *   valid                      the same
 *   invalid, warn              stored and flagged: `schema_errors` of the event
 *   invalid, strict            refused with `payload_invalid`
 *   invalid, committed         as under warn: the producer has committed the event (outbox, relay, Kafka)
 *
 * With mode off, the check costs two map lookups. `data` is parsed only if there is a schema to check it against.
 */
import type { CompiledSchema } from '../catalogue/compile-schema.ts';
import type { EventCatalogue, KnownType } from '../catalogue/event-catalogue.ts';
import type { Clock } from '../domain/clock.ts';
import { type NewEvent, RESERVED_TYPE_PREFIX } from '../domain/event.ts';
import type { ValidationMode } from '../domain/event-type-version.ts';
import { type FieldError, Problem } from '../domain/problem.ts';
import type { CatalogueVersion } from '../ports/catalogue-store.ts';
import { CheckTurns } from './check-turns.ts';
import type { SchemaFailures } from './schema-failures.ts';
import { storeDidNotAnswer } from './store-problems.ts';

export interface SchemaCheckOptions {
  readonly catalogue: Pick<EventCatalogue, 'typeOf' | 'modeOf' | 'schemaOf'>;
  readonly failures: Pick<SchemaFailures, 'onRefused'>;
  readonly clock: Pick<Clock, 'monotonic'>;
}

/** What an event is checked against: a schema, or the reason why it cannot be valid. */
type Expected =
  | { readonly error: FieldError; readonly version: string | null }
  | { readonly type: KnownType; readonly version: CatalogueVersion | null };

const ignore = (): void => {};

export class SchemaCheck {
  readonly #options: SchemaCheckOptions;
  readonly #turns: CheckTurns;
  /** By tenant: resolves after the latest check of the request that is handing in its events. */
  readonly #latestChecks = new Map<string, Promise<void>>();

  constructor(options: SchemaCheckOptions) {
    this.#options = options;
    this.#turns = new CheckTurns(options.clock);
  }

  /**
   * Returns the event with its version, and with `schemaErrors` if its payload is invalid and it is stored nevertheless.
   * Throws or rejects with `payload_invalid` if it must be refused. Returns a promise only if this payload must be checked, or
   * if an earlier event of the same request is being checked: the events of a request keep their order.
   */
  check<E extends NewEvent>(event: E, { canRefuse }: { readonly canRefuse: boolean }): E | Promise<E> {
    const { catalogue } = this.#options;
    const type = catalogue.typeOf(event.type);
    const mode = catalogue.modeOf(event.tenant, type);
    const before = this.#latestChecks.get(event.tenant);
    const versioned = withVersion(event, type);
    if (mode === 'off' || event.type.startsWith(RESERVED_TYPE_PREFIX))
      return before === undefined ? versioned : before.then(() => versioned);
    const checked = this.#checkPayload(versioned, type, mode, canRefuse);
    // The promise may reject while earlier events are being checked, before anybody awaits it.
    checked.catch(ignore);
    const inOrder = before === undefined ? checked : before.then(() => checked);
    this.#keepOrder(event.tenant, inOrder);
    return inOrder;
  }

  #keepOrder(tenant: string, checked: Promise<unknown>): void {
    // A request hands in its events synchronously, so the next microtask comes after the last of them.
    if (this.#latestChecks.size === 0) queueMicrotask(() => this.#latestChecks.clear());
    this.#latestChecks.set(tenant, checked.then(ignore, ignore));
  }

  async #checkPayload<E extends NewEvent>(
    event: E,
    type: KnownType | undefined,
    mode: ValidationMode,
    canRefuse: boolean,
  ): Promise<E> {
    const expected = expectedOf(event, type);
    const errors = 'error' in expected ? [expected.error] : await this.#findErrors(event, expected);
    if (errors.length === 0) return event;
    if (mode !== 'strict' || !canRefuse) return { ...event, schemaErrors: errors };
    this.#options.failures.onRefused(event, errors[0]!);
    throw newRefusal(event, errors);
  }

  async #findErrors(
    { tenant, data }: NewEvent,
    { type, version }: Extract<Expected, { type: KnownType }>,
  ): Promise<readonly FieldError[]> {
    let schema: CompiledSchema | null;
    try {
      schema = await this.#options.catalogue.schemaOf(type, version);
    } catch (error) {
      throw storeDidNotAnswer(error);
    }
    if (schema === null) return [];
    return this.#turns.run(tenant, () => schema.check(JSON.parse(data.toString('utf8'))));
  }
}

/** An event that names no version has the latest one of its type. */
function withVersion<E extends NewEvent>(event: E, type: KnownType | undefined): E {
  if (type === undefined || type.latest === null || event.schemaVersion !== null) return event;
  return { ...event, schemaVersion: type.latest };
}

function expectedOf({ schemaVersion }: NewEvent, type: KnownType | undefined): Expected {
  const failed = (path: string, message: string): Expected => ({
    error: { path, message },
    version: schemaVersion,
  });
  if (type === undefined) return failed('type', 'is not in the catalogue');
  if (schemaVersion === null) return { type, version: null };
  const version = type.versions.find((each) => each.version === schemaVersion);
  if (version === undefined) return failed('schema_version', `is not a version of ${type.name}`);
  if (version.status === 'draft' || version.status === 'retired')
    return failed('schema_version', `names a version that is ${version.status}`);
  return { type, version };
}

function newRefusal({ type, schemaVersion }: NewEvent, errors: readonly FieldError[]): Problem {
  const checked = schemaVersion === null ? type : `${type}, version ${schemaVersion}`;
  const list = errors.map(({ path, message }) => `${path}: ${message}`).join('; ');
  return new Problem('payload_invalid', `The event does not match the catalogue (${checked}): ${list}.`, {
    errors,
  });
}
