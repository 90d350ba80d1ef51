import { type AccessScope, scopesWithin } from '../domain/access-scopes.ts';
import { isTenantId, TENANT_ID_RULE } from '../domain/event.ts';
import { idPrefixes, publicId, type Uuid } from '../domain/ids.ts';
import { invalidField } from '../domain/problem.ts';
import { inTransaction } from '../postgres/database.ts';
import {
  createPortalSession,
  endPortalSession,
  type PortalSessionRecord,
} from '../postgres/queries/portal-sessions.ts';
import type { Change } from './audit-trail.ts';
import type { Actor } from './caller.ts';
import { issueKey, type KeyDependencies } from './keys.ts';
import { notFound } from './object-ids.ts';
import { refuseOperatorTenant } from './operator-access.ts';

/** What a portal session can be allowed to do. */
export const portalCapabilities = scopesWithin.tenant;
/** A session may publish and see signing secrets only if its creator says so. */
export const DEFAULT_CAPABILITIES: readonly AccessScope[] = portalCapabilities.filter(
  (capability) => capability !== 'events:publish' && capability !== 'secrets:read',
);
export const DEFAULT_TTL_SECONDS = 3600;
export const MAX_TTL_SECONDS = 86_400;

export interface NewPortalSession {
  readonly tenant: string;
  readonly capabilities?: readonly AccessScope[];
  readonly ttl_seconds?: number;
  readonly description?: string;
}

/** Short-lived access to the console for the people of one tenant. A session is a key that expires. */
export class PortalSessions {
  readonly #dependencies: KeyDependencies;

  constructor(dependencies: KeyDependencies) {
    this.#dependencies = dependencies;
  }

  /** Creates a session. Returns its token too, which cannot be read again. Throws `invalid` or `conflict`. */
  async create(
    actor: Actor,
    {
      tenant,
      capabilities = DEFAULT_CAPABILITIES,
      ttl_seconds = DEFAULT_TTL_SECONDS,
      description = '',
    }: NewPortalSession,
  ): Promise<{ record: PortalSessionRecord; token: string }> {
    const { pool, clock, operatorTenant } = this.#dependencies;
    if (!isTenantId(tenant)) throw invalidField('tenant', TENANT_ID_RULE);
    refuseOperatorTenant(tenant, operatorTenant);
    const { key: token, stored } = issueKey(this.#dependencies);
    const record = await inTransaction(pool, async (client) => {
      const created = await createPortalSession(client, {
        ...stored,
        tenant,
        scopes: [...capabilities],
        description,
        expires_at: new Date(clock.now() + ttl_seconds * 1000),
      });
      await actor.audit.record(client, changeOf('portal_session.create', created));
      return created;
    });
    return { record, token };
  }

  /** Ends a session. Throws `not_found` if there is no such session, or it has ended already. */
  async end(actor: Actor, id: Uuid): Promise<void> {
    const { pool, onKeyChanged } = this.#dependencies;
    await inTransaction(pool, async (client) => {
      const ended = await endPortalSession(client, id);
      if (ended === null) throw notFound('portal session', id);
      await actor.audit.record(client, changeOf('portal_session.delete', ended));
    });
    onKeyChanged();
  }
}

const changeOf = (
  action: 'portal_session.create' | 'portal_session.delete',
  session: PortalSessionRecord,
): Change => ({
  action,
  tenant: session.tenant,
  objectId: publicId(idPrefixes.key, session.id),
  changes: [
    { field: 'prefix', after: session.prefix },
    { field: 'capabilities', after: session.scopes },
    { field: 'expires_at', after: session.expires_at },
    ...(session.description === '' ? [] : [{ field: 'description', after: session.description }]),
  ],
});
