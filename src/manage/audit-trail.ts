import type { Clock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';
import type { Queryable } from '../postgres/database.ts';
import { type AuditEntry, type FieldChange, insertAuditEntry } from '../postgres/queries/audit-log.ts';
import type { AuditAction } from './audit-actions.ts';
import { type Caller, nameOfCaller } from './caller.ts';

export interface AuditSource {
  readonly caller: Caller;
  readonly requestId: string;
  /** The IP address that the request came from. */
  readonly address: string;
}

/** One change, as the audit log describes it. */
export interface Change {
  /** Default: the action that the trail was created with. */
  readonly action?: AuditAction;
  readonly tenant: string | null;
  readonly objectId: string | null;
  readonly changes?: readonly FieldChange[];
}

type Fields = Readonly<Record<string, unknown>>;

/** What a PUT replaces. */
export interface ReplacedObject {
  /** Null: the object is created. */
  readonly before: Fields | null;
  readonly after: Fields;
  readonly tenant: string | null;
  readonly objectId: string;
  /** The field whose values are not recorded, only that it changed. */
  readonly hiddenField: string;
  readonly create: AuditAction;
  readonly update: AuditAction;
}

/** Records what one request changed. */
export class AuditTrail {
  readonly #source: AuditSource;
  readonly #clock: Clock;
  readonly #defaultAction: string;
  #isComplete = false;
  #tenant: string | null = null;
  /** True from the moment the audit entry is written: the transaction may have committed even if the request fails. */
  mayHaveChanged = false;

  constructor(source: AuditSource, clock: Clock, defaultAction: string) {
    this.#source = source;
    this.#clock = clock;
    this.#defaultAction = defaultAction;
  }

  /** True if the change is recorded, or if the request changed nothing. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** The tenant that the recorded change is about. Null: none. */
  get tenant(): string | null {
    return this.#tenant;
  }

  /** Writes the entry. Pass the client of the transaction that makes the change, so that both commit or neither. */
  async record(client: Queryable, change: Change): Promise<void> {
    this.mayHaveChanged = true;
    this.#tenant = change.tenant ?? this.#tenant;
    await insertAuditEntry(client, this.entryOf(change));
    this.#isComplete = true;
  }

  /** Records the fields that a PUT changes. Returns false if it changes nothing. */
  async recordReplacement(
    client: Queryable,
    { before, after, hiddenField, create, update, ...subject }: ReplacedObject,
  ): Promise<boolean> {
    const changes = fieldChanges(before ?? {}, after, (field) => field !== hiddenField);
    if (before !== null && changes.length === 0) {
      this.markUnchanged();
      return false;
    }
    await this.record(client, { ...subject, action: before === null ? create : update, changes });
    return true;
  }

  /** Call it if the request changes nothing: a dry run, or the object already has the requested state. */
  markUnchanged(): void {
    this.#isComplete = true;
  }

  entryOf(change: Change): AuditEntry {
    const { caller, requestId, address } = this.#source;
    const action = change.action ?? this.#defaultAction;
    return {
      id: newId(this.#clock.now()),
      tenant: change.tenant,
      actor: nameOfCaller(caller),
      actor_name: caller.prefix,
      scope: caller.scope,
      action,
      object_type: action.split('.')[0]!,
      object_id: change.objectId,
      request_id: requestId,
      address,
      changes: change.changes ?? [],
    };
  }
}

const MAX_VALUE_LENGTH = 1024;

/**
 * The fields that differ, with their values before and after. Only the name of a field is kept if `isShown` says no
 * (it may hold a secret) or if a value is longer than 1,024 characters of JSON.
 */
export function fieldChanges(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
  isShown: (field: string) => boolean,
): FieldChange[] {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...fields].flatMap((field) => {
    const [was, is] = [JSON.stringify(before[field]) ?? 'null', JSON.stringify(after[field]) ?? 'null'];
    if (was === is) return [];
    if (!isShown(field) || was.length > MAX_VALUE_LENGTH || is.length > MAX_VALUE_LENGTH) return [{ field }];
    return [{ field, before: before[field] ?? null, after: after[field] ?? null }];
  });
}
