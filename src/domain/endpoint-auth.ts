/** How an endpoint's requests prove to the receiver who sends them, beside the signature. */

/** Every kind of `auth`, with the one of its fields that is a secret. */
export const authSecrets = { basic: 'password', bearer: 'token', oauth2: 'client_secret' } as const;
export type AuthType = keyof typeof authSecrets;

/** As it is stored, and as a caller gives it. The secret is missing where it is sealed. */
export interface AuthConfig {
  type: AuthType;
  username?: string;
  password?: string;
  token?: string;
  token_url?: string;
  client_id?: string;
  client_secret?: string;
  scope?: string;
}

/** PEM. The key is the secret, and missing where it is sealed. */
export interface TlsConfig {
  cert: string;
  key?: string;
  ca?: string;
}

export interface OAuthClient {
  readonly type: 'oauth2';
  readonly tokenUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly scope: string | null;
}

export type EndpointAuth =
  | { readonly type: 'basic'; readonly username: string; readonly password: string }
  | { readonly type: 'bearer'; readonly token: string }
  | OAuthClient;

/** What is shown when the receiver asks for a certificate. */
export interface ClientCertificate {
  readonly cert: string;
  readonly key: string;
  /** Authorities that the receiver's own certificate is judged by, instead of the public ones. */
  readonly ca: string | null;
}

/** Null: there is none, or its secret has not been opened, as where it is only shown. */
export function resolveAuth(config: AuthConfig | undefined): EndpointAuth | null {
  if (config?.[authSecrets[config.type]] === undefined) return null;
  switch (config.type) {
    case 'basic':
      return { type: 'basic', username: config.username!, password: config.password! };
    case 'bearer':
      return { type: 'bearer', token: config.token! };
    case 'oauth2':
      return {
        type: 'oauth2',
        tokenUrl: config.token_url!,
        clientId: config.client_id!,
        clientSecret: config.client_secret!,
        scope: config.scope ?? null,
      };
  }
}

export function resolveCertificate(config: TlsConfig | undefined): ClientCertificate | null {
  if (config?.key === undefined) return null;
  return { cert: config.cert, key: config.key, ca: config.ca ?? null };
}
