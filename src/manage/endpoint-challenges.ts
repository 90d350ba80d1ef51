/** Before an endpoint is created or led elsewhere: does the receiver want that? docs/challenges.md */

import type { Caller } from '../api/http/authenticator.ts';
import type { Challenger } from '../deliver/index.ts';
import type { Challenge, Endpoint } from '../domain/endpoint.ts';
import { invalidField, Problem } from '../domain/problem.ts';
import type { Editable } from './endpoint-patch.ts';

export interface ChallengeOptions {
  readonly challenger: Challenger;
  /** Challenges under way in this process; a quarter of them at most for one tenant. */
  readonly atOnce: number;
  /** Callers without an admin key cannot do without one. */
  readonly required: boolean;
}

/** Long enough for most of those under way to be over. */
const RETRY_AFTER_SECONDS = 2;

export class EndpointChallenges {
  readonly #options: ChallengeOptions;
  readonly #perTenant: number;
  readonly #byTenant = new Map<string, number>();
  #underWay = 0;

  constructor(options: ChallengeOptions) {
    this.#options = options;
    this.#perTenant = Math.max(1, Math.floor(options.atOnce / 4));
  }

  /** The challenge that must be met before `before` may become `after`. Null: none. `before` is null for a new one. */
  needed(caller: Caller, before: Editable | null, after: Editable): Challenge | null {
    const challenge = after.config.challenge ?? null;
    const moved = before === null || before.url !== after.url;
    if (!moved && (before.config.challenge ?? null) === challenge) return null;
    if (challenge === null && this.#options.required && caller.scope !== 'admin')
      throw invalidField('challenge', 'is required here: "echo" or "cloudevents"');
    return challenge;
  }

  /** Asks the receiver. It may keep us waiting: never inside a transaction. */
  async meet(endpoint: Endpoint, challenge: Challenge): Promise<void> {
    const { tenant } = endpoint;
    const ofTenant = this.#byTenant.get(tenant) ?? 0;
    if (ofTenant >= this.#perTenant) throw busy('rate_limited', 'The tenant has');
    if (this.#underWay >= this.#options.atOnce) throw busy('overloaded', 'Posthorn has');
    this.#byTenant.set(tenant, ofTenant + 1);
    this.#underWay += 1;
    let failure: string | null;
    try {
      failure = await this.#options.challenger(endpoint, challenge);
    } finally {
      this.#underWay -= 1;
      const left = this.#byTenant.get(tenant)! - 1;
      if (left === 0) this.#byTenant.delete(tenant);
      else this.#byTenant.set(tenant, left);
    }
    if (failure !== null)
      throw new Problem('challenge_failed', `The challenge "${challenge}" was not met. ${failure}`, {
        errors: [{ path: 'url', message: failure }],
      });
  }
}

const busy = (code: 'rate_limited' | 'overloaded', who: string): Problem =>
  new Problem(code, `${who} as many challenges under way as are allowed at once. Try again shortly.`, {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
