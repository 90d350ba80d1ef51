/** Limits how many receivers are challenged at once, and decides when a challenge is needed. See docs/challenges.md. */
import type { Challenger } from '../deliver/index.ts';
import type { Challenge, Endpoint } from '../domain/endpoint.ts';
import { invalidField, Problem } from '../domain/problem.ts';
import type { Caller } from './caller.ts';
import type { EditableEndpoint } from './endpoint-patch.ts';

export interface ChallengeOptions {
  readonly challenger: Challenger;
  /** Challenges in progress in this process; one tenant gets at most a quarter of them. */
  readonly maxConcurrent: number;
  /** Callers without an admin key must choose a challenge. */
  readonly isRequired: boolean;
  /** If a challenge is required: other hosts that may get token requests. `*.` in front means all names below it. */
  readonly tokenHosts: readonly string[];
}

/** Long enough for most challenges in progress to finish. */
const RETRY_AFTER_SECONDS = 2;

export class EndpointChallenges {
  readonly #options: ChallengeOptions;
  readonly #maxPerTenant: number;
  readonly #inProgressByTenant = new Map<string, number>();
  #inProgress = 0;

  constructor(options: ChallengeOptions) {
    this.#options = options;
    this.#maxPerTenant = Math.max(1, Math.floor(options.maxConcurrent / 4));
  }

  /**
   * The challenge that the receiver must pass before `before` may become `after`, or null. `before` is null for a new
   * endpoint. Throws `invalid` if this server requires a challenge and none is chosen.
   */
  findRequiredChallenge(
    caller: Caller,
    before: EditableEndpoint | null,
    after: EditableEndpoint,
  ): Challenge | null {
    const challenge = after.config.challenge ?? null;
    const hasMoved = before === null || before.url !== after.url;
    if (!hasMoved && (before.config.challenge ?? null) === challenge) return null;
    if (challenge === null && this.#options.isRequired && caller.scope !== 'admin')
      throw invalidField('challenge', 'is required on this server: use "echo" or "cloudevents"');
    return challenge;
  }

  /**
   * Throws `invalid` if this server requires a challenge and a new `auth.token_url` leads to a host that would get
   * requests without consent. Only the host of the endpoint passes the challenge.
   */
  checkTokenHost(caller: Caller, before: EditableEndpoint | null, after: EditableEndpoint): void {
    const tokenUrl = after.config.auth?.token_url;
    if (tokenUrl === undefined || !this.#options.isRequired || caller.scope === 'admin') return;
    if (before !== null && before.url === after.url && before.config.auth?.token_url === tokenUrl) return;
    const host = hostOf(tokenUrl);
    if (host === hostOf(after.url) || this.#options.tokenHosts.some((name) => isBelow(host, name))) return;
    throw invalidField(
      'auth.token_url',
      `must be on the host of "url", because "${host}" has not agreed to get requests: ask the operator to add it to POSTHORN_TOKEN_HOSTS`,
    );
  }

  /**
   * Sends the challenge and waits for the receiver, so never call it inside a transaction. Throws `challenge_failed`
   * if the receiver does not pass, `rate_limited` or `overloaded` if too many challenges are in progress.
   */
  async run(endpoint: Endpoint, challenge: Challenge): Promise<void> {
    const { tenant } = endpoint;
    const ofTenant = this.#inProgressByTenant.get(tenant) ?? 0;
    if (ofTenant >= this.#maxPerTenant) throw tooMany('rate_limited', 'The tenant');
    if (this.#inProgress >= this.#options.maxConcurrent) throw tooMany('overloaded', 'Posthorn');
    this.#inProgressByTenant.set(tenant, ofTenant + 1);
    this.#inProgress += 1;
    let failure: string | null;
    try {
      failure = await this.#options.challenger(endpoint, challenge);
    } finally {
      this.#inProgress -= 1;
      const left = this.#inProgressByTenant.get(tenant)! - 1;
      if (left === 0) this.#inProgressByTenant.delete(tenant);
      else this.#inProgressByTenant.set(tenant, left);
    }
    if (failure !== null)
      throw new Problem(
        'challenge_failed',
        `The receiver did not pass the challenge "${challenge}". ${failure}`,
        {
          errors: [{ path: 'url', message: failure }],
        },
      );
  }
}

const hostOf = (url: string): string => new URL(url).hostname.replace(/\.$/, '');

export const isBelow = (host: string, name: string): boolean =>
  name.startsWith('*.') ? host.endsWith(name.slice(1)) : host === name;

const tooMany = (code: 'rate_limited' | 'overloaded', who: string): Problem =>
  new Problem(code, `${who} has too many challenges in progress. Try again shortly.`, {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
