/** How requests authenticate to the receiver, in addition to the signature. */

/** Every type of `auth`, with the field that is its secret. */
export const authSecrets = { basic: 'password', bearer: 'token', oauth2: 'client_secret' } as const;
export type AuthType = keyof typeof authSecrets;

/** The setting as the API takes it and as it is stored. The stored form lacks the secret, which is encrypted separately. */
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

/** In PEM. The stored form lacks the key, which is encrypted separately. */
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

/** The certificate to present if the receiver asks for one. */
export interface ClientCertificate {
  readonly cert: string;
  readonly key: string;
  /** Authorities to verify the receiver's certificate with, instead of the public ones. */
  readonly ca: string | null;
}

/** Returns null if there is no `auth`, or if its secret has not been decrypted. */
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
