import { type AccessScope, type KeyScope, scopesWithin } from '../domain/access-scopes.ts';
import { ADDRESS_RANGE_RULE, readAddressRange } from '../domain/address-range.ts';
import type { Clock } from '../domain/clock.ts';
import { isTenantId, TENANT_ID_RULE } from '../domain/event.ts';
import { idPrefixes, newId, publicId, type Uuid } from '../domain/ids.ts';
import { type FieldError, invalidField, invalidFields } from '../domain/problem.ts';
import { parseTime, TIME_RULE } from '../domain/time.ts';
import { inTransaction, type Pool } from '../postgres/database.ts';
import { createKey, type KeyRecord, readKey, revokeKey, updateKey } from '../postgres/queries/keys.ts';
import { type ApiKeyFormat, hashApiKey, prefixOfApiKey } from './api-keys.ts';
import type { AuditAction } from './audit-actions.ts';
import { type Change, fieldChanges } from './audit-trail.ts';
import type { Actor } from './caller.ts';
import { notFound } from './object-ids.ts';
import { refuseOperatorTenant } from './operator-access.ts';
import { burstOf, type RateLimitInput } from './rate-limit.ts';
import { dropReadOnly, type ReadOnlyFields } from './read-only-fields.ts';

export interface KeyDependencies {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly keyFormat: ApiKeyFormat;
  readonly operatorTenant: string;
  /** A key was changed or revoked: drop it from the cache of this process. The database notifies the other processes. */
  readonly onKeyChanged: () => void;
}

/** Restrictions of a key. Null: no restriction. */
interface Restrictions {
  readonly scopes?: readonly AccessScope[] | null;
  readonly expires_at?: string | null;
  readonly allowed_ips?: readonly string[] | null;
}

export interface NewKey extends Restrictions {
  readonly scope: KeyScope;
  readonly tenant?: string;
  readonly description?: string;
  readonly rate_limit?: RateLimitInput | null;
}

/** Fields that are absent stay as they are. */
export interface KeyPatch extends Restrictions {
  readonly description?: string;
}

/** A key as the API shows it. */
export type ShowKey = (key: KeyRecord) => object;

const READ_ONLY: ReadOnlyFields = {
  asShown: ['id', 'scope', 'tenant', 'prefix', 'created_at', 'rate_limit'],
  ignored: ['last_used_at'],
};

/** Generates a key. Returns it with its id and with what the database stores of it. */
export function issueKey({ clock, keyFormat }: Pick<KeyDependencies, 'clock' | 'keyFormat'>) {
  const key = keyFormat.generate();
  return { key, stored: { id: newId(clock.now()), prefix: prefixOfApiKey(key), hash: hashApiKey(key) } };
}

export class Keys {
  readonly #dependencies: KeyDependencies;

  constructor(dependencies: KeyDependencies) {
    this.#dependencies = dependencies;
  }

  /** Creates a key. Returns the key itself too, which cannot be read again. */
  async create(actor: Actor, input: NewKey): Promise<{ record: KeyRecord; key: string }> {
    checkTenant(input);
    refuseOperatorTenant(input.tenant, this.#dependencies.operatorTenant);
    const { scope, tenant, description, rate_limit: limit } = input;
    const restrictions = this.#readRestrictions(scope, input);
    const { key, stored } = issueKey(this.#dependencies);
    const record = await inTransaction(this.#dependencies.pool, async (client) => {
      const created = await createKey(client, {
        ...stored,
        scope,
        tenant: tenant ?? null,
        description: description ?? '',
        rate_per_second: limit?.per_second ?? null,
        rate_burst: limit == null ? null : burstOf(limit),
        scopes: restrictions.scopes ?? null,
        expires_at: restrictions.expires_at ?? null,
        allowed_ips: restrictions.allowed_ips ?? null,
      });
      await actor.audit.record(client, changeOf('key.create', created));
      return created;
    });
    return { record, key };
  }

  /** Throws `not_found` if there is no such key, or it was revoked. `patch` may repeat what `show` returns. */
  async update(actor: Actor, id: Uuid, patch: KeyPatch, show: ShowKey): Promise<KeyRecord> {
    const { pool, onKeyChanged } = this.#dependencies;
    const updated = await inTransaction(pool, async (client) => {
      const before = await readKey(client, id, { forUpdate: true });
      if (before === null) throw notFound('key', id);
      const changed = dropReadOnly(patch, show(before), READ_ONLY);
      const { description = before.description } = changed;
      const after = { ...before, description, ...this.#readRestrictions(before.scope, changed, before) };
      const changes = fieldChanges(changeable(before), changeable(after), () => true);
      if (changes.length === 0) {
        actor.audit.markUnchanged();
        return before;
      }
      await actor.audit.record(client, { ...changeOf('key.update', before), changes });
      return updateKey(client, after);
    });
    onKeyChanged();
    return updated;
  }

  /** Throws `not_found` if there is no such key, or it was revoked before. */
  async revoke(actor: Actor, id: Uuid): Promise<void> {
    const { pool, onKeyChanged } = this.#dependencies;
    await inTransaction(pool, async (client) => {
      const revoked = await revokeKey(client, id);
      if (revoked === null) throw notFound('key', id);
      await actor.audit.record(client, changeOf('key.delete', revoked));
    });
    onKeyChanged();
  }

  /** Returns the given restrictions as they are stored. Throws `invalid`. An unchanged `expires_at` may be in the past. */
  #readRestrictions(
    scope: KeyScope,
    { scopes, expires_at, allowed_ips }: Restrictions,
    before?: KeyRecord,
  ): Partial<Pick<KeyRecord, 'scopes' | 'expires_at' | 'allowed_ips'>> {
    const errors: FieldError[] = [...findScopeErrors(scope, scopes ?? [])];
    const expiry = expires_at == null ? null : new Date(parseTime(expires_at));
    if (expiry !== null && Number.isNaN(expiry.getTime()))
      errors.push({ path: 'expires_at', message: TIME_RULE });
    else if (
      expiry !== null &&
      expiry.getTime() !== before?.expires_at?.getTime() &&
      expiry.getTime() <= this.#dependencies.clock.now()
    )
      errors.push({ path: 'expires_at', message: 'must be in the future' });
    const ranges = (allowed_ips ?? []).map((range, index) => {
      const read = readAddressRange(range);
      if (read === null) errors.push({ path: `allowed_ips[${index}]`, message: ADDRESS_RANGE_RULE });
      return read ?? '';
    });
    if (errors.length > 0) throw invalidFields(errors);
    return {
      ...(scopes !== undefined && { scopes: scopes && [...scopes] }),
      ...(expires_at !== undefined && { expires_at: expiry }),
      ...(allowed_ips !== undefined && { allowed_ips: allowed_ips && ranges }),
    };
  }
}

function findScopeErrors(scope: KeyScope, scopes: readonly AccessScope[]): FieldError[] {
  const allowed = scopesWithin[scope];
  return scopes.flatMap((each, index) =>
    allowed.includes(each)
      ? []
      : {
          path: `scopes[${index}]`,
          message: `is more than a key with the scope "${scope}" may do; it may have ${allowed.join(', ')}`,
        },
  );
}

function checkTenant({ scope, tenant }: NewKey): void {
  if (scope === 'tenant' && tenant === undefined)
    throw invalidField('tenant', 'is required for a tenant key');
  if (scope === 'admin' && tenant !== undefined)
    throw invalidField('tenant', 'must be left out: an admin key is for all tenants');
  if (tenant !== undefined && !isTenantId(tenant)) throw invalidField('tenant', TENANT_ID_RULE);
}

const changeable = ({ description, scopes, expires_at, allowed_ips }: KeyRecord) => ({
  description,
  scopes,
  expires_at,
  allowed_ips,
});

const changeOf = (action: AuditAction, key: KeyRecord): Change => ({
  action,
  tenant: key.tenant,
  objectId: publicId(idPrefixes.key, key.id),
  changes: [
    { field: 'prefix', after: key.prefix },
    { field: 'scope', after: key.scope },
    { field: 'description', after: key.description },
    ...(['scopes', 'expires_at', 'allowed_ips'] as const).flatMap((field) =>
      key[field] === null ? [] : [{ field, after: key[field] }],
    ),
  ],
});
