import type { Clock } from '../domain/clock.ts';
import { idPrefixes, newId, publicId, type Uuid } from '../domain/ids.ts';
import { invalidField, Problem } from '../domain/problem.ts';
import { inTransaction, type Pool } from '../postgres/database.ts';
import type { EndpointCache } from '../postgres/endpoint-cache.ts';
import { findEndpoint } from '../postgres/queries/endpoints.ts';
import {
  loadSecrets,
  MAX_LIVE_SECRETS,
  revokePreviousSecrets,
  rotateSecret,
} from '../postgres/queries/rotate-secret.ts';
import type { SecretBox } from '../postgres/secret-box.ts';
import type { Actor } from './caller.ts';
import { lockOrThrow } from './endpoints.ts';
import { notFound } from './object-ids.ts';
import { checkSecret, generateSecret, signatureProfileOf } from './signing-secrets.ts';
import { isWholeMilliseconds, WHOLE_MILLISECONDS_RULE } from './whole-milliseconds.ts';

export interface SecretDependencies {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly endpoints: EndpointCache;
  readonly secretBox: SecretBox;
  /** How long the previous secret signs beside a new one, unless the caller says otherwise. */
  readonly signatureOverlapMs: number;
}

export interface CurrentSecret {
  readonly secret: string;
  readonly createdAt: Date;
  /** Older secrets that still sign. */
  readonly previous: readonly { readonly createdAt: Date; readonly expiresAt: Date | null }[];
}

/** The signing secrets of endpoints. */
export class EndpointSecrets {
  readonly #dependencies: SecretDependencies;

  constructor(dependencies: SecretDependencies) {
    this.#dependencies = dependencies;
  }

  /** Returns the new secret, and when the previous one stops signing. Throws `invalid` if too many secrets would sign. */
  async rotate(
    { caller, audit }: Actor,
    id: Uuid,
    input: { readonly secret?: string; readonly overlap_seconds?: number },
  ): Promise<{ secret: string; previousExpiresAt: Date | null }> {
    const { pool, clock, endpoints, secretBox, signatureOverlapMs } = this.#dependencies;
    const { overlap_seconds: overlap } = input;
    if (overlap !== undefined && !isWholeMilliseconds(overlap))
      throw invalidField('overlap_seconds', WHOLE_MILLISECONDS_RULE);
    const overlapMs = overlap === undefined ? signatureOverlapMs : Math.round(overlap * 1000);
    const rotated = await inTransaction(pool, async (client) => {
      const endpoint = await lockOrThrow(client, id, caller);
      const profile = signatureProfileOf(endpoint.config.signature);
      if (input.secret !== undefined) checkSecret(input.secret, profile);
      const secret = input.secret ?? generateSecret(profile);
      const sealed = secretBox.seal(secret, id);
      const newSecret = { id: newId(clock.now()), endpointId: id, sealed };
      const { previousExpiresAt, liveSecrets } = await rotateSecret(client, newSecret, overlapMs);
      // Not the oldest secret ends, because a receiver may still verify with it.
      if (liveSecrets > MAX_LIVE_SECRETS) throw tooManySecrets();
      await audit.record(client, {
        action: 'endpoint.rotate_secret',
        tenant: endpoint.tenant,
        objectId: publicId(idPrefixes.endpoint, id),
        changes: [{ field: 'secret' }],
      });
      return { secret, previousExpiresAt };
    });
    await endpoints.refresh();
    return rotated;
  }

  /** All secrets but the current one stop signing now. */
  async revokePrevious({ caller, audit }: Actor, id: Uuid): Promise<void> {
    const { pool, endpoints } = this.#dependencies;
    await inTransaction(pool, async (client) => {
      const { tenant } = await lockOrThrow(client, id, caller);
      await revokePreviousSecrets(client, id);
      await audit.record(client, {
        action: 'endpoint.revoke_previous_secrets',
        tenant,
        objectId: publicId(idPrefixes.endpoint, id),
      });
    });
    await endpoints.refresh();
  }

  /** Reading a secret is recorded too: whoever has it can sign as Posthorn. */
  async show({ caller, audit }: Actor, id: Uuid): Promise<CurrentSecret> {
    const { pool, secretBox } = this.#dependencies;
    const endpoint = await findEndpoint(pool, id, caller.tenant);
    if (endpoint === null) throw notFound('endpoint', id);
    const [current, ...previous] = await loadSecrets(pool, id);
    if (current === undefined) throw new Problem('not_found', 'The endpoint has no secret.');
    await audit.record(pool, {
      action: 'endpoint.show_secret',
      tenant: endpoint.tenant,
      objectId: publicId(idPrefixes.endpoint, id),
    });
    return { secret: secretBox.open(current.sealed, id), createdAt: current.createdAt, previous };
  }
}

const tooManySecrets = (): Problem =>
  invalidField(
    'overlap_seconds',
    `${MAX_LIVE_SECRETS} secrets of this endpoint sign already: revoke the old ones (DELETE /v1/endpoints/{id}/secrets/previous), or use 0`,
  );
