/** Asks a receiver for its consent (`challenge`) before an endpoint is created or moved to another URL. */
import type { Challenge, Endpoint, EndpointSecret } from '../domain/endpoint.ts';
import { resolveEndpoint } from '../domain/endpoint-config.ts';
import type { Uuid } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import type { EndpointCache } from '../postgres/endpoint-cache.ts';
import type { EndpointView } from '../postgres/queries/endpoints.ts';
import { openConfig } from '../postgres/sealed-config.ts';
import type { SecretBox } from '../postgres/secret-box.ts';
import type { Caller } from './caller.ts';
import type { EndpointChallenges } from './endpoint-challenges.ts';
import type { EditableEndpoint } from './endpoint-patch.ts';
import { shareSecrets, signatureProfileOf } from './signing-secrets.ts';

/** What the receiver agreed to. */
export interface Consent {
  readonly url: string;
  readonly challenge: Challenge;
}

interface Identity {
  readonly id: Uuid;
  readonly tenant: string;
}

export interface ConsentDependencies {
  readonly challenges: EndpointChallenges;
  readonly endpoints: EndpointCache;
  readonly secretBox: SecretBox;
}

export class ReceiverConsent {
  readonly #dependencies: ConsentDependencies;

  constructor(dependencies: ConsentDependencies) {
    this.#dependencies = dependencies;
  }

  /** Challenges the receiver of a new endpoint, if a challenge is needed. */
  async askForNew(
    caller: Caller,
    identity: Identity,
    settings: EditableEndpoint,
    secret: string,
  ): Promise<void> {
    const { challenges } = this.#dependencies;
    challenges.checkTokenHost(caller, null, settings);
    const challenge = challenges.findRequiredChallenge(caller, null, settings);
    if (challenge === null) return;
    await challenges.run(this.#resolve(identity, settings, [{ secret, expiresAt: null }]), challenge);
  }

  /** Challenges the receiver of a changed endpoint. Returns what it agreed to; null if no challenge was needed. */
  async askForChange(caller: Caller, before: EndpointView, after: EditableEndpoint): Promise<Consent | null> {
    const { challenges, endpoints } = this.#dependencies;
    challenges.checkTokenHost(caller, before, after);
    const challenge = challenges.findRequiredChallenge(caller, before, after);
    if (challenge === null) return null;
    await endpoints.refresh();
    const endpoint = this.#resolve(before, after, endpoints.get(before.id)?.secrets ?? []);
    // If the new profile needs another kind of secret, that secret is only created with the change. Until then the
    // challenge is signed under the old profile.
    const keepsSecrets = shareSecrets(
      signatureProfileOf(before.config.signature),
      signatureProfileOf(after.config.signature),
    );
    const signature = keepsSecrets ? endpoint.signature : (before.config.signature ?? 'standard');
    await challenges.run({ ...endpoint, signature }, challenge);
    return { url: after.url, challenge };
  }

  /**
   * Call with the endpoint locked. Throws `invalid` if another host would get token requests without consent, and
   * `conflict` if the receiver agreed to something else than is now written.
   */
  check(consent: Consent | null, caller: Caller, before: EditableEndpoint, after: EditableEndpoint): void {
    const { challenges } = this.#dependencies;
    challenges.checkTokenHost(caller, before, after);
    const challenge = challenges.findRequiredChallenge(caller, before, after);
    if (challenge === null || (consent?.url === after.url && consent.challenge === challenge)) return;
    throw new Problem(
      'conflict',
      'Another request changed the endpoint while its receiver was being challenged. Try again.',
    );
  }

  /** The endpoint as the engine would see it. */
  #resolve(
    { id, tenant }: Identity,
    settings: EditableEndpoint,
    secrets: readonly EndpointSecret[],
  ): Endpoint {
    const { url, enabled, paused, disabled_reason: disabledReason } = settings;
    const config = openConfig(settings.config, id, this.#dependencies.secretBox);
    return resolveEndpoint(
      { id, tenant, url, config, enabled, paused, disabledReason, deleted: false },
      secrets,
    );
  }
}
