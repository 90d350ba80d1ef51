import type { Clock } from '../domain/clock.ts';
import { isTenantId, TENANT_ID_RULE } from '../domain/event.ts';
import { idPrefixes, newId, publicId, type Uuid } from '../domain/ids.ts';
import { invalidField } from '../domain/problem.ts';
import { inTransaction, type Pool } from '../postgres/database.ts';
import { createKey, type KeyRecord, type KeyScope, revokeKey } from '../postgres/queries/keys.ts';
import { type ApiKeyFormat, hashApiKey, prefixOfApiKey } from './api-keys.ts';
import type { AuditAction } from './audit-actions.ts';
import type { Change } from './audit-trail.ts';
import type { Actor } from './caller.ts';
import { notFound } from './object-ids.ts';
import { burstOf, type RateLimitInput } from './rate-limit.ts';

export interface KeyDependencies {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly keyFormat: ApiKeyFormat;
  /** A key was revoked: drop it from the cache of this process. The database notifies the other processes. */
  readonly onKeyRevoked: () => void;
}

export interface NewKey {
  readonly scope: KeyScope;
  readonly tenant?: string;
  readonly description?: string;
  readonly rate_limit?: RateLimitInput | null;
}

/** API keys. */
export class Keys {
  readonly #dependencies: KeyDependencies;

  constructor(dependencies: KeyDependencies) {
    this.#dependencies = dependencies;
  }

  /** Returns the key itself too: it cannot be read again. */
  async create(actor: Actor, input: NewKey): Promise<{ record: KeyRecord; key: string }> {
    checkTenant(input);
    const { pool, clock } = this.#dependencies;
    const { scope, tenant, description, rate_limit: limit } = input;
    const key = this.#dependencies.keyFormat.generate();
    const record = await inTransaction(pool, async (client) => {
      const created = await createKey(client, {
        id: newId(clock.now()),
        scope,
        tenant: tenant ?? null,
        description: description ?? '',
        prefix: prefixOfApiKey(key),
        hash: hashApiKey(key),
        rate_per_second: limit?.per_second ?? null,
        rate_burst: limit == null ? null : burstOf(limit),
      });
      await actor.audit.record(client, changeOf('key.create', created));
      return created;
    });
    return { record, key };
  }

  /** Throws `not_found` if there is no such key, or it was revoked before. */
  async revoke(actor: Actor, id: Uuid): Promise<void> {
    const { pool, onKeyRevoked } = this.#dependencies;
    await inTransaction(pool, async (client) => {
      const revoked = await revokeKey(client, id);
      if (revoked === null) throw notFound('key', id);
      await actor.audit.record(client, changeOf('key.delete', revoked));
    });
    onKeyRevoked();
  }
}

function checkTenant({ scope, tenant }: NewKey): void {
  if (scope === 'tenant' && tenant === undefined)
    throw invalidField('tenant', 'is required for a tenant key');
  if (scope === 'admin' && tenant !== undefined)
    throw invalidField('tenant', 'must be left out: an admin key is for all tenants');
  if (tenant !== undefined && !isTenantId(tenant)) throw invalidField('tenant', TENANT_ID_RULE);
}

const changeOf = (action: AuditAction, key: KeyRecord): Change => ({
  action,
  tenant: key.tenant,
  objectId: publicId(idPrefixes.key, key.id),
  changes: [
    { field: 'prefix', after: key.prefix },
    { field: 'scope', after: key.scope },
    { field: 'description', after: key.description },
  ],
});
