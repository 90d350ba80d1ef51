/** Authorization code flow with PKCE (RFC 7636) against an OpenID Connect provider. */
import type { Configuration } from 'openid-client';
import { Problem } from '../../domain/problem.ts';
import type { Claims } from './roles.ts';

export interface ProviderOptions {
  readonly issuer: string;
  readonly clientId: string;
  /** Null: a public client. */
  readonly clientSecret: string | null;
  readonly scope: string;
  /** Claims that Posthorn reads from the userinfo endpoint if the ID token lacks one of them. */
  readonly neededClaims: readonly string[];
}

/** What must be remembered from the start of a sign-in until the provider answers. */
export interface SignInAttempt {
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
}

const REQUEST_TIMEOUT_SECONDS = 10;
const RETRY_AFTER_SECONDS = 5;

export class IdentityProvider {
  readonly #options: ProviderOptions;
  #configuration: Promise<Configuration> | null = null;

  constructor(options: ProviderOptions) {
    this.#options = options;
  }

  /** Returns where to send the browser. Throws `unavailable` if the provider does not answer. */
  async begin(redirectUri: string): Promise<{ url: URL; attempt: SignInAttempt }> {
    const client = await import('openid-client');
    const configuration = await this.#configure();
    const attempt = {
      state: client.randomState(),
      nonce: client.randomNonce(),
      codeVerifier: client.randomPKCECodeVerifier(),
    };
    const url = client.buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: this.#options.scope,
      state: attempt.state,
      nonce: attempt.nonce,
      code_challenge: await client.calculatePKCECodeChallenge(attempt.codeVerifier),
      code_challenge_method: 'S256',
    });
    return { url, attempt };
  }

  /** Exchanges the code of the callback and returns the verified claims. Throws if the provider does not answer or its answer is invalid. */
  async finish(callbackUrl: URL, attempt: SignInAttempt): Promise<Claims & { readonly sub: string }> {
    const client = await import('openid-client');
    const configuration = await this.#configure();
    const tokens = await client.authorizationCodeGrant(configuration, callbackUrl, {
      pkceCodeVerifier: attempt.codeVerifier,
      expectedState: attempt.state,
      expectedNonce: attempt.nonce,
      idTokenExpected: true,
    });
    const claims = tokens.claims()!;
    const isComplete = this.#options.neededClaims.every((name) => claims[name] !== undefined);
    if (isComplete || configuration.serverMetadata().userinfo_endpoint === undefined) return claims;
    return { ...(await client.fetchUserInfo(configuration, tokens.access_token, claims.sub)), ...claims };
  }

  /** Reads the provider's settings at the first sign-in, so that the start does not depend on it. */
  #configure(): Promise<Configuration> {
    this.#configuration ??= this.#discover().catch((error: unknown) => {
      this.#configuration = null;
      throw new Problem('unavailable', 'The identity provider does not answer. Try again shortly.', {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
        cause: error,
      });
    });
    return this.#configuration;
  }

  async #discover(): Promise<Configuration> {
    const client = await import('openid-client');
    const { issuer, clientId, clientSecret } = this.#options;
    const authentication = clientSecret === null ? client.None() : client.ClientSecretBasic(clientSecret);
    // The configuration allows http only for a provider on this machine.
    const insecure = issuer.startsWith('http:') ? [client.allowInsecureRequests] : [];
    return client.discovery(new URL(issuer), clientId, undefined, authentication, {
      timeout: REQUEST_TIMEOUT_SECONDS,
      execute: insecure,
    });
  }
}
