/** When a receiver is asked for its consent (`challenge`), and for what it gave it. */

import type { ApiContext } from '../api/dependencies.ts';
import { fits, profileOf } from '../api/endpoints/secret-routes.ts';
import type { Caller } from '../api/http/authenticator.ts';
import type { Challenge, Endpoint, EndpointSecret } from '../domain/endpoint.ts';
import { resolveEndpoint } from '../domain/endpoint-config.ts';
import type { Uuid } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import type { EndpointView } from '../postgres/queries/endpoints.ts';
import { openConfig } from '../postgres/sealed-config.ts';
import type { Editable } from './endpoint-patch.ts';

/** What the receiver agreed to. */
export interface Consent {
  readonly url: string;
  readonly challenge: Challenge;
}

interface Identity {
  readonly id: Uuid;
  readonly tenant: string;
}

export function receiverConsents({ challenges, endpoints, secretBox }: ApiContext) {
  /** The endpoint as the engine would know it. */
  const resolved = (of: Identity, to: Editable, secrets: readonly EndpointSecret[]): Endpoint => {
    const config = openConfig(to.config, of.id, secretBox);
    const { url, enabled, paused, disabled_reason: disabledReason } = to;
    return resolveEndpoint({ ...of, url, config, enabled, paused, disabledReason, deleted: false }, secrets);
  };

  return {
    async toNew(caller: Caller, of: Identity, wanted: Editable, secret: string): Promise<void> {
      const challenge = challenges.needed(caller, null, wanted);
      if (challenge === null) return;
      await challenges.meet(resolved(of, wanted, [{ secret, expiresAt: null }]), challenge);
    },

    /** Null: none was needed. */
    async toChange(caller: Caller, before: EndpointView, after: Editable): Promise<Consent | null> {
      const challenge = challenges.needed(caller, before, after);
      if (challenge === null) return null;
      await endpoints.refresh();
      const endpoint = resolved(before, after, endpoints.get(before.id)?.secrets ?? []);
      // Secrets that do not fit the new profile are replaced with the change: until then the old one signs.
      const fitting = fits(profileOf(before.config.signature), profileOf(after.config.signature));
      const signature = fitting ? endpoint.signature : (before.config.signature ?? 'standard');
      await challenges.meet({ ...endpoint, signature }, challenge);
      return { url: after.url, challenge };
    },

    /** Once the endpoint is locked: is what is about to be written still what the receiver agreed to? */
    check(consent: Consent | null, caller: Caller, before: Editable, after: Editable): void {
      const challenge = challenges.needed(caller, before, after);
      if (challenge === null || (consent?.url === after.url && consent.challenge === challenge)) return;
      throw new Problem('conflict', 'The endpoint was changed by somebody else meanwhile. Try again.');
    },
  };
}
