import { signatureHeaders } from '../deliver/index.ts';
import type { Clock } from '../domain/clock.ts';
import { idPrefixes, newId, publicId, type Uuid } from '../domain/ids.ts';
import { invalidField, Problem } from '../domain/problem.ts';
import { parseTime, TIME_RULE } from '../domain/time.ts';
import { inTransaction, type Pool } from '../postgres/database.ts';
import type { EndpointCache } from '../postgres/endpoint-cache.ts';
import { announceChanges, findEndpoint } from '../postgres/queries/endpoints.ts';
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
import { checkSecret, generateSecret, signatureProfileOf, tooManySecrets } from './signing-secrets.ts';
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
  /** The header that it signs now. */
  readonly header: string | null;
  /** Older secrets that still sign. */
  readonly previous: readonly {
    readonly createdAt: Date;
    readonly expiresAt: Date | null;
    readonly header: string | null;
  }[];
}

export interface RotationInput {
  readonly secret?: string;
  /** Null: the old secret signs until it is revoked. */
  readonly overlap_seconds?: number | null;
  /** Which secret signs the main header of a profile with room for one. */
  readonly primary?: 'old' | 'new';
  /** When the new secret starts to sign the main header. Only with `primary: "old"`. */
  readonly switch_at?: string | null;
}

export interface RotatedSecret {
  readonly secret: string;
  readonly previousExpiresAt: Date | null;
  readonly primary: 'old' | 'new';
  readonly switchAt: Date | null;
}

/** The signing secrets of endpoints. */
export class EndpointSecrets {
  readonly #dependencies: SecretDependencies;

  constructor(dependencies: SecretDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Returns the new secret, when the previous one stops signing, and which of them signs a header with room for one.
   * Throws `invalid` if too many secrets would sign.
   */
  async rotate({ caller, audit }: Actor, id: Uuid, input: RotationInput): Promise<RotatedSecret> {
    const { pool, clock, endpoints, secretBox, signatureOverlapMs } = this.#dependencies;
    const { overlap_seconds: overlap } = input;
    if (overlap != null && !isWholeMilliseconds(overlap))
      throw invalidField('overlap_seconds', WHOLE_MILLISECONDS_RULE);
    const overlapMs = overlap === undefined ? signatureOverlapMs : overlap && Math.round(overlap * 1000);
    const { primary = 'old' } = input;
    const switchAt = readSwitchTime(input, clock.now(), overlapMs);
    const rotated = await inTransaction(pool, async (client) => {
      const endpoint = await lockOrThrow(client, id, caller);
      const profile = signatureProfileOf(endpoint.config.signature);
      if (input.secret !== undefined) checkSecret(input.secret, profile);
      const secret = input.secret ?? generateSecret(profile);
      const sealed = secretBox.seal(secret, id);
      const newSecret = { id: newId(clock.now()), endpointId: id, sealed };
      const { previousExpiresAt, liveSecrets } = await rotateSecret(client, newSecret, {
        overlapMs,
        mainFrom: primary === 'new' ? 'now' : switchAt,
      });
      // Refuse instead of ending the oldest secret: a receiver may still verify with it.
      if (liveSecrets > MAX_LIVE_SECRETS) throw tooManySecrets('overlap_seconds');
      await audit.record(client, {
        action: 'endpoint.rotate_secret',
        tenant: endpoint.tenant,
        objectId: publicId(idPrefixes.endpoint, id),
        changes: [{ field: 'secret' }],
      });
      await announceChanges(client, [id]);
      return { secret, previousExpiresAt, primary, switchAt };
    });
    await endpoints.refresh();
    return rotated;
  }

  /** All secrets but the current one stop signing now. */
  async revokePrevious({ caller, audit }: Actor, id: Uuid): Promise<void> {
    const { pool, endpoints } = this.#dependencies;
    await inTransaction(pool, async (client) => {
      const { tenant } = await lockOrThrow(client, id, caller);
      const isChanged = await revokePreviousSecrets(client, id);
      await audit.record(client, {
        action: 'endpoint.revoke_previous_secrets',
        tenant,
        objectId: publicId(idPrefixes.endpoint, id),
      });
      if (isChanged) await announceChanges(client, [id]);
    });
    await endpoints.refresh();
  }

  /** Returns the current secret. Records the read in the audit log, because anyone with the secret can sign as Posthorn. */
  async show({ caller, audit }: Actor, id: Uuid): Promise<CurrentSecret> {
    const { pool, clock, secretBox } = this.#dependencies;
    const endpoint = await findEndpoint(pool, id, caller.tenant);
    if (endpoint === null) throw notFound('endpoint', id);
    const stored = await loadSecrets(pool, id);
    const [current, ...previous] = stored;
    if (current === undefined) throw new Problem('not_found', 'The endpoint has no secret.');
    await audit.record(pool, {
      action: 'endpoint.show_secret',
      tenant: endpoint.tenant,
      objectId: publicId(idPrefixes.endpoint, id),
    });
    const [header, ...older] = signatureHeaders(
      endpoint.config.signature ?? 'standard',
      stored.map(({ expiresAt, mainFrom, signature }) => ({
        expiresAt: expiresAt?.getTime() ?? null,
        mainFrom: mainFrom?.getTime() ?? null,
        signature,
      })),
      clock.now(),
    );
    return {
      secret: secretBox.open(current.sealed, id),
      createdAt: current.createdAt,
      header: header ?? null,
      previous: previous.map((secret, index) => ({ ...secret, header: older[index] ?? null })),
    };
  }
}

/** Throws `invalid` if the time does not fit the rotation. */
function readSwitchTime(
  { primary = 'old', switch_at }: RotationInput,
  nowMs: number,
  overlapMs: number | null,
): Date | null {
  if (switch_at == null) return null;
  const time = parseTime(switch_at);
  if (Number.isNaN(time)) throw invalidField('switch_at', TIME_RULE);
  if (primary === 'new')
    throw invalidField('switch_at', 'must be left out with primary "new": the new secret takes over at once');
  if (time <= nowMs) throw invalidField('switch_at', 'must be in the future');
  if (overlapMs !== null && time > nowMs + overlapMs)
    throw invalidField('switch_at', 'must not be after the old secret stops signing: see overlap_seconds');
  return new Date(time);
}
