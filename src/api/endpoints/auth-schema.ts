/** `auth` and `tls` of an endpoint, as callers send them and as the API shows them. */
import { Type } from 'typebox';
import { type AuthConfig, type AuthType, authSecrets, type TlsConfig } from '../../domain/endpoint-auth.ts';
import { REDACTED } from '../../manage/redacted.ts';
import { documentedAs, Nullable } from '../http/validation.ts';

const Text = (maxLength: number) => Type.Optional(Type.String({ minLength: 1, maxLength }));

const Needed = (maxLength: number) => Type.String({ minLength: 1, maxLength });
const closed = { additionalProperties: false };

/** Which fields belong to which type. */
const AuthAlternatives = Type.Union([
  Type.Object({ type: Type.Literal('basic'), username: Needed(256), password: Needed(1024) }, closed),
  Type.Object({ type: Type.Literal('bearer'), token: Needed(8192) }, closed),
  Type.Object(
    {
      type: Type.Literal('oauth2'),
      token_url: Needed(2048),
      client_id: Needed(1024),
      client_secret: Needed(4096),
      scope: Type.Optional(Nullable(Needed(1024))),
    },
    closed,
  ),
]);

// One object for all types, because the errors of a union would list every alternative. The control plane checks
// which fields belong to which type.
export const AuthSchema = Type.Object(
  {
    type: Type.Enum(Object.keys(authSecrets) as AuthType[]),
    username: Text(256),
    password: Text(1024),
    token: Text(8192),
    token_url: Text(2048),
    client_id: Text(1024),
    client_secret: Text(4096),
    scope: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 1024 }))),
  },
  {
    additionalProperties: false,
    ...documentedAs(AuthAlternatives),
    description:
      '`basic` has username and password, `bearer` has token, `oauth2` (client credentials) has token_url, client_id, client_secret and optionally scope.',
  },
);

export const TlsSchema = Type.Object(
  {
    cert: Type.String({
      minLength: 1,
      maxLength: 16_384,
      description: 'PEM: the certificate, then its chain.',
    }),
    key: Type.String({ minLength: 1, maxLength: 16_384, description: 'PEM: its private key.' }),
    ca: Type.Optional(
      Nullable(
        Type.String({
          minLength: 1,
          maxLength: 16_384,
          description:
            'PEM: the authorities that may have issued the receiver’s certificate, instead of the public ones.',
        }),
      ),
    ),
  },
  { additionalProperties: false, description: 'A client certificate.' },
);

const Redacted = Type.Literal(REDACTED);

export const ShownAuth = Type.Union([
  Type.Object(
    { type: Type.Literal('basic'), username: Type.String(), password: Redacted },
    { title: 'BasicAuth' },
  ),
  Type.Object({ type: Type.Literal('bearer'), token: Redacted }, { title: 'BearerAuth' }),
  Type.Object(
    {
      type: Type.Literal('oauth2'),
      token_url: Type.String(),
      client_id: Type.String(),
      client_secret: Redacted,
      scope: Nullable(Type.String()),
    },
    { title: 'OAuth2' },
  ),
]);

export const ShownTls = Type.Object(
  { cert: Type.String(), key: Redacted, ca: Nullable(Type.String()) },
  { title: 'ClientCertificate' },
);

export function showAuth(auth: AuthConfig | undefined) {
  switch (auth?.type) {
    case undefined:
      return null;
    case 'basic':
      return { type: auth.type, username: auth.username!, password: REDACTED } as const;
    case 'bearer':
      return { type: auth.type, token: REDACTED } as const;
    case 'oauth2':
      return {
        type: auth.type,
        token_url: auth.token_url!,
        client_id: auth.client_id!,
        client_secret: REDACTED,
        scope: auth.scope ?? null,
      } as const;
  }
}

export function showTls(tls: TlsConfig | undefined) {
  return tls === undefined ? null : ({ cert: tls.cert, key: REDACTED, ca: tls.ca ?? null } as const);
}
