import { isDeepStrictEqual } from 'node:util';
import type { EgressPolicy } from '../deliver/index.ts';
import type { Clock } from '../domain/clock.ts';
import type { SignatureProfile, SignatureSetting } from '../domain/endpoint.ts';
import { idPrefixes, newId, publicId, type Uuid } from '../domain/ids.ts';
import { type FieldError, invalidField } from '../domain/problem.ts';
import { readTenant } from '../ingest/index.ts';
import { type Client, inTransaction, type Pool } from '../postgres/database.ts';
import type { EndpointCache } from '../postgres/endpoint-cache.ts';
import { lockSubscriptionsOf } from '../postgres/queries/endpoint-limits.ts';
import {
  addSecret,
  announceChanges,
  createEndpoint,
  deleteEndpoint,
  type EndpointView,
  findEndpoint,
  lockEndpoint,
  updateEndpoint,
} from '../postgres/queries/endpoints.ts';
import { listRegionNames } from '../postgres/queries/regions.ts';
import { MAX_LIVE_SECRETS, rotateSecret } from '../postgres/queries/rotate-secret.ts';
import { findTenantPin } from '../postgres/queries/tenants.ts';
import { sealConfig } from '../postgres/sealed-config.ts';
import type { SecretBox } from '../postgres/secret-box.ts';
import type { AuditAction } from './audit-actions.ts';
import type { Actor, Caller } from './caller.ts';
import { endpointChanges } from './endpoint-audit.ts';
import type { EndpointChallenges } from './endpoint-challenges.ts';
import { findChangedFields, type PatchWithReadOnly, type ShowEndpoint } from './endpoint-changes.ts';
import { type EndpointLimits, refuseManyPatterns, reserveEndpoint } from './endpoint-limits.ts';
import { applyPatch, type EditableEndpoint, type EndpointPatch } from './endpoint-patch.ts';
import { findWarnings, refuseOverlapping } from './endpoint-warnings.ts';
import { notFound } from './object-ids.ts';
import { checkOperatorChange } from './operator-access.ts';
import { type Consent, ReceiverConsent } from './receiver-consent.ts';
import { refuseToMoveSecrets, refuseToReveal, showHeaders, withoutKnownHeaders } from './shown-headers.ts';
import {
  checkSecret,
  generateSecret,
  shareSecrets,
  signatureProfileOf,
  tooManySecrets,
} from './signing-secrets.ts';

export interface EndpointDependencies {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly endpoints: EndpointCache;
  readonly secretBox: SecretBox;
  readonly egress: EgressPolicy;
  readonly challenges: EndpointChallenges;
  /** How long the old secrets keep signing if the new signature needs another kind of secret. */
  readonly signatureOverlapMs: number;
  readonly endpointLimits: EndpointLimits;
  /** The tenant whose endpoints may get the operational events of all tenants. */
  readonly operatorTenant: string;
}

/** An endpoint after a change, with warnings about what is valid and probably a mistake. */
export interface ChangedEndpoint {
  readonly endpoint: EndpointView;
  readonly warnings: readonly FieldError[];
}

export interface NewEndpoint extends EndpointPatch {
  readonly url: string;
  readonly tenant?: string;
  /** The signing secret. Default: a random one. */
  readonly secret?: string;
}

const BLANK: EditableEndpoint = {
  url: '',
  description: '',
  config: {},
  metadata: {},
  enabled: true,
  disabled_reason: null,
  paused: false,
};

export class Endpoints {
  readonly #dependencies: EndpointDependencies;
  readonly #consent: ReceiverConsent;

  constructor(dependencies: EndpointDependencies) {
    this.#dependencies = dependencies;
    this.#consent = new ReceiverConsent(dependencies);
  }

  /** Challenges the receiver if needed, then creates the endpoint. Returns it with its signing secret. */
  async create(actor: Actor, input: NewEndpoint): Promise<ChangedEndpoint & { secret: string }> {
    const { pool, clock, endpoints, secretBox, endpointLimits, operatorTenant } = this.#dependencies;
    const { tenant: requestedTenant, secret: givenSecret, ...settings } = input;
    const isForOperator = settings.operator === true && actor.caller.tenant === null;
    const defaultTenant = isForOperator ? operatorTenant : undefined;
    const tenant = readTenant(requestedTenant ?? defaultTenant, actor.caller.tenant);
    const id = newId(clock.now());
    const api_version =
      settings.api_version === undefined ? await findTenantPin(pool, tenant) : settings.api_version;
    const plain = applyPatch(BLANK, { ...settings, api_version }, this.#dependencies);
    this.#checkOperator(actor.caller, tenant, BLANK, plain);
    const sealed = this.#seal(id, plain);
    const profile = signatureProfileOf(sealed.config.signature);
    if (givenSecret !== undefined) checkSecret(givenSecret, profile);
    const secret = givenSecret ?? generateSecret(profile);
    await this.#consent.askForNew(actor.caller, { id, tenant }, plain, secret);
    await inTransaction(pool, async (client) => {
      await checkRegion(client, BLANK, sealed);
      await reserveEndpoint(client, tenant, endpointLimits.perTenant);
      await this.#refuseManyPatterns(tenant, null, sealed);
      if (endpointLimits.unique) await refuseOverlapping(client, { id, tenant, ...sealed });
      await createEndpoint(client, { id, tenant, ...sealed });
      await actor.audit.record(client, {
        action: 'endpoint.create',
        tenant,
        objectId: publicId(idPrefixes.endpoint, id),
        changes: endpointChanges(BLANK, sealed),
      });
      await addSecret(client, {
        id: newId(clock.now()),
        endpointId: id,
        sealed: secretBox.seal(secret, id),
      });
      await announceChanges(client, [id]);
    });
    await endpoints.refresh();
    const endpoint = (await findEndpoint(pool, id, null))!;
    return { endpoint, secret, warnings: await findWarnings(pool, endpoint) };
  }

  /** Challenges the receiver if needed, then changes the endpoint. */
  async update(
    actor: Actor,
    id: Uuid,
    patch: PatchWithReadOnly,
    show: ShowEndpoint,
  ): Promise<ChangedEndpoint> {
    const showToCaller: ShowEndpoint = (view) => show(this.visibleTo(actor.caller, view));
    const endpoint = await this.#change(actor, id, patch, 'endpoint.update', showToCaller);
    return { endpoint, warnings: await findWarnings(this.#dependencies.pool, endpoint) };
  }

  /** Returns the endpoint with the header values that the caller may see, and `[redacted]` for the others. */
  visibleTo(caller: Caller, view: EndpointView): EndpointView {
    const { sealed_headers: _sealed, ...config } = view.config;
    const headers = showHeaders(view, this.#dependencies.secretBox, caller);
    return { ...view, config: { ...config, headers } };
  }

  pause(actor: Actor, id: Uuid): Promise<EndpointView> {
    return this.#change(actor, id, { paused: true }, 'endpoint.pause');
  }

  resume(actor: Actor, id: Uuid): Promise<EndpointView> {
    return this.#change(actor, id, { paused: false }, 'endpoint.resume');
  }

  /** Its history stays readable. The worker that owns its shard skips the deliveries that wait. */
  async delete(actor: Actor, id: Uuid): Promise<void> {
    const { pool, endpoints } = this.#dependencies;
    await inTransaction(pool, async (client) => {
      const { tenant } = await lockOrThrow(client, id, actor.caller);
      await deleteEndpoint(client, id);
      await actor.audit.record(client, {
        action: 'endpoint.delete',
        tenant,
        objectId: publicId(idPrefixes.endpoint, id),
      });
      await announceChanges(client, [id]);
    });
    await endpoints.refresh();
  }

  async #change(
    { caller, audit }: Actor,
    id: Uuid,
    patch: PatchWithReadOnly,
    action: AuditAction,
    show: ShowEndpoint = () => ({}),
  ): Promise<EndpointView> {
    const { pool, endpoints, endpointLimits } = this.#dependencies;
    const consent = await this.#askReceiver(caller, id, patch, show);
    await inTransaction(pool, async (client) => {
      if (mayChangeSubscription(patch)) await lockSubscriptionsOf(client, id);
      const locked = await lockOrThrow(client, id, caller);
      // Headers of a row that an earlier version wrote are not sealed yet.
      const before = { ...locked, ...this.#seal(id, editablePart(locked)) };
      const patched = applyPatch(before, this.#changedPart(caller, before, patch, show), this.#dependencies);
      this.#consent.check(consent, caller, before, patched);
      this.#checkOperator(caller, before.tenant, before, patched);
      if (isDeepStrictEqual(editablePart(before), patched)) return audit.markUnchanged();
      const after = this.#seal(id, patched);
      await checkRegion(client, before, after);
      const switched = before.enabled === after.enabled ? null : after.enabled ? 'on' : 'off';
      await this.#refuseManyPatterns(before.tenant, before, after);
      // Two endpoints that already overlap can still change their other settings.
      if (endpointLimits.unique && isSubscribedAnew(before, after))
        await refuseOverlapping(client, { id, tenant: before.tenant, ...after });
      await updateEndpoint(client, { id, ...after }, switched);
      const profile = signatureProfileOf(after.config.signature);
      const needsNewSecret = !shareSecrets(signatureProfileOf(before.config.signature), profile);
      const changes = endpointChanges(before, after);
      if (needsNewSecret) changes.push({ field: 'secret' });
      await audit.record(client, {
        action,
        tenant: before.tenant,
        objectId: publicId(idPrefixes.endpoint, id),
        changes,
      });
      // The new profile cannot sign with the old secrets. They keep signing under the old one until the overlap ends.
      if (needsNewSecret) await this.#addSecretOf(client, id, profile, before.config.signature ?? 'standard');
      if (!isDeepStrictEqual(cachedPart(before), cachedPart(after))) await announceChanges(client, [id]);
    });
    await endpoints.refresh();
    return (await findEndpoint(pool, id, caller.tenant))!;
  }

  /** Outside of the transaction, because the receiver may take seconds to answer. */
  async #askReceiver(
    caller: Caller,
    id: Uuid,
    patch: PatchWithReadOnly,
    show: ShowEndpoint,
  ): Promise<Consent | null> {
    if (patch.url === undefined && patch.challenge === undefined) return null;
    const before = await findEndpoint(this.#dependencies.pool, id, caller.tenant);
    if (before === null) throw notFound('endpoint', id);
    const changed = this.#changedPart(caller, before, patch, show);
    return this.#consent.askForChange(caller, before, applyPatch(before, changed, this.#dependencies));
  }

  /** Returns the part of a patch that changes the endpoint. Throws `invalid` if it may not change it so. */
  #changedPart(
    caller: Caller,
    before: EndpointView,
    patch: PatchWithReadOnly,
    show: ShowEndpoint,
  ): EndpointPatch {
    const changed = findChangedFields(before, patch, show);
    refuseToReveal(before, changed, caller);
    refuseToMoveSecrets(before, changed, caller);
    if (changed.headers === undefined) return changed;
    const headers = withoutKnownHeaders(before, changed.headers, this.#dependencies.secretBox, caller);
    return { ...changed, headers: headers! };
  }

  async #addSecretOf(
    client: Client,
    endpointId: Uuid,
    profile: SignatureProfile,
    keptSignature: SignatureSetting,
  ): Promise<void> {
    const { clock, secretBox, signatureOverlapMs: overlapMs } = this.#dependencies;
    const sealed = secretBox.seal(generateSecret(profile), endpointId);
    const secret = { id: newId(clock.now()), endpointId, sealed };
    const rotation = { overlapMs, mainFrom: 'now', keptSignature } as const;
    const { liveSecrets } = await rotateSecret(client, secret, rotation);
    if (liveSecrets > MAX_LIVE_SECRETS) throw tooManySecrets('signature');
  }

  #refuseManyPatterns(
    tenant: string,
    before: EditableEndpoint | null,
    after: EditableEndpoint,
  ): Promise<void> {
    const { endpoints, endpointLimits } = this.#dependencies;
    const change = { before: before?.config ?? null, after: after.config };
    return refuseManyPatterns(endpoints, tenant, change, endpointLimits.patternsPerTenant);
  }

  #checkOperator(caller: Caller, tenant: string, before: EditableEndpoint, after: EditableEndpoint): void {
    const change = {
      tenant,
      before: before.config.operator ?? false,
      after: after.config.operator ?? false,
    };
    checkOperatorChange(caller, change, this.#dependencies.operatorTenant);
  }

  #seal(id: Uuid, endpoint: EditableEndpoint): EditableEndpoint {
    return { ...endpoint, config: sealConfig(endpoint.config, id, this.#dependencies.secretBox) };
  }
}

/** Whether the patch may change the URL or the events that the endpoint gets. */
const mayChangeSubscription = ({ url, events, channels }: PatchWithReadOnly): boolean =>
  url !== undefined || events !== undefined || channels !== undefined;

/** Allows a region without a worker now, but not a region that never had one: it is a typing error, and no worker would send. */
async function checkRegion(client: Client, before: EditableEndpoint, after: EditableEndpoint): Promise<void> {
  const { region } = after.config;
  if (region === undefined || region === before.config.region) return;
  const known = await listRegionNames(client);
  if (known.includes(region)) return;
  const list = known.length === 0 ? 'none yet' : known.join(', ');
  throw invalidField('region', `must be a region that a worker was started with: ${list}`);
}

/** Whether the URL or the events that it gets have changed. */
const isSubscribedAnew = (before: EditableEndpoint, after: EditableEndpoint): boolean =>
  before.url !== after.url ||
  JSON.stringify([before.config.events, before.config.channels]) !==
    JSON.stringify([after.config.events, after.config.channels]);

/** Locks the endpoint until the transaction ends. Throws `not_found` if the caller may not see it. */
export async function lockOrThrow(client: Client, id: Uuid, { tenant }: Caller): Promise<EndpointView> {
  const endpoint = await lockEndpoint(client, id, tenant);
  if (endpoint === null) throw notFound('endpoint', id);
  return endpoint;
}

const editablePart = (endpoint: EndpointView): EditableEndpoint => {
  const { url, description, config, metadata, enabled, disabled_reason, paused } = endpoint;
  return { url, description, config, metadata, enabled, disabled_reason, paused };
};

/** The parts of an endpoint that processes cache. Other changes need not be announced. */
const cachedPart = (endpoint: EditableEndpoint): Partial<EditableEndpoint> => {
  const { url, config, enabled, disabled_reason, paused } = endpoint;
  return { url, config, enabled, disabled_reason, paused };
};
