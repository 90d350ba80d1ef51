import { isTenantId, TENANT_ID_RULE } from '../domain/event.ts';
import { isVersionName, type ValidationMode, VERSION_RULE } from '../domain/event-type-version.ts';
import { invalidField, Problem, tenantBeingDeleted } from '../domain/problem.ts';
import { expiresFirst } from '../domain/retention.ts';
import { inTransaction, type Pool } from '../postgres/database.ts';
import { endPortalSessionsOf } from '../postgres/queries/portal-sessions.ts';
import {
  deleteTenant,
  isExpunging,
  lockTenant,
  putTenant,
  readTenantUse,
  type TenantRecord,
  type TenantSettings,
} from '../postgres/queries/tenants.ts';
import type { Actor } from './caller.ts';
import { checkMetadataSize } from './metadata.ts';
import { burstOf, type RateLimitInput } from './rate-limit.ts';
import { dropReadOnly, type ReadOnlyFields } from './read-only-fields.ts';

export interface TenantInput {
  readonly name?: string;
  readonly description?: string;
  readonly metadata?: Record<string, unknown>;
  readonly ingest_rate_limit?: RateLimitInput | null;
  readonly max_endpoints?: number | null;
  readonly retention_days?: number | null;
  readonly validation?: ValidationMode;
  readonly api_version?: string | null;
}

/** Fields that GET shows in addition to the settings. A PUT may repeat them. */
const READ_ONLY: ReadOnlyFields = { asShown: ['id', 'created_at'], ignored: ['updated_at'] };

export class Tenants {
  readonly #pool: Pool;
  readonly #retentionDays: number;
  readonly #onChanged: () => Promise<void>;

  /** `retentionDays`: how long events are kept. 0: forever. */
  constructor({
    pool,
    retentionDays,
    onCatalogueChanged,
  }: {
    readonly pool: Pool;
    readonly retentionDays: number;
    readonly onCatalogueChanged: () => Promise<void>;
  }) {
    this.#pool = pool;
    this.#retentionDays = retentionDays;
    this.#onChanged = onCatalogueChanged;
  }

  /** Creates the tenant, or replaces all of its settings. */
  async put(
    actor: Actor,
    id: string,
    input: TenantInput,
  ): Promise<{ created: boolean; tenant: TenantRecord }> {
    const after = toSettings(id, input);
    if (after.retention_days !== null && !expiresFirst(after.retention_days, this.#retentionDays))
      throw invalidField(
        'retention_days',
        `must be at most ${this.#retentionDays}, because POSTHORN_RETENTION_EVENTS deletes events after that`,
      );
    const answer = await inTransaction(this.#pool, async (client) => {
      const before = await lockTenant(client, id);
      dropReadOnly(input, before ?? { id }, READ_ONLY);
      const isChanged = await actor.audit.recordReplacement(client, {
        before: before && tenantFields(before),
        after: tenantFields(after),
        tenant: id,
        objectId: id,
        hiddenField: 'metadata',
        create: 'tenant.create',
        update: 'tenant.update',
      });
      if (before !== null && !isChanged) return { created: false, tenant: before };
      return { created: before === null, tenant: await putTenant(client, after) };
    });
    // The mode of validation is part of the catalogue in memory.
    await this.#onChanged();
    return answer;
  }

  /** Throws `conflict` while the tenant has endpoints or keys, or is being expunged. */
  async delete(actor: Actor, id: string): Promise<void> {
    await inTransaction(this.#pool, async (client) => {
      if ((await lockTenant(client, id)) === null) throw tenantNotFound();
      // The tenant's row must stay: it makes Posthorn refuse events of the tenant until the expunge has ended.
      if (await isExpunging(client, id)) throw tenantBeingDeleted(id);
      const uses = await readTenantUse(client, id);
      const left = (['endpoints', 'keys'] as const).filter((use) => uses[use]);
      if (left.length > 0)
        throw new Problem(
          'conflict',
          `The tenant "${id}" still has ${left.join(' and ')}. Delete them first, then the tenant.`,
        );
      await endPortalSessionsOf(client, id);
      await deleteTenant(client, id);
      await actor.audit.record(client, { action: 'tenant.delete', tenant: id, objectId: id });
    });
  }
}

export const tenantNotFound = () => new Problem('not_found', 'There is no tenant with this id.');

function toSettings(id: string, input: TenantInput): TenantSettings {
  if (!isTenantId(id)) throw invalidField('id', TENANT_ID_RULE);
  const {
    name = '',
    description = '',
    metadata = {},
    ingest_rate_limit: limit,
    max_endpoints = null,
    retention_days = null,
    validation = 'off',
    api_version = null,
  } = input;
  if (api_version !== null && !isVersionName(api_version)) throw invalidField('api_version', VERSION_RULE);
  const tooLarge = checkMetadataSize(metadata);
  if (tooLarge !== null) throw invalidField(tooLarge.path, tooLarge.message);
  return {
    id,
    name,
    description,
    metadata,
    ingest_per_second: limit?.per_second ?? null,
    ingest_burst: limit == null ? null : burstOf(limit),
    max_endpoints,
    retention_days,
    validation,
    api_version,
  };
}

/** The settings under the names of the API. */
export const tenantFields = ({
  name,
  description,
  metadata,
  ingest_per_second,
  ingest_burst,
  max_endpoints,
  retention_days,
  validation,
  api_version,
}: TenantSettings) => ({
  name,
  description,
  metadata,
  ingest_rate_limit:
    ingest_per_second === null || ingest_burst === null
      ? null
      : { per_second: ingest_per_second, burst: ingest_burst },
  max_endpoints,
  retention_days,
  validation,
  api_version,
});
