import { Type } from 'typebox';
import { RFC3339, TIME_RULE } from '../../domain/time.ts';
import { SIGNING_SECRET } from '../../manage/signing-secrets.ts';
import { Nullable, withMessage } from '../http/validation.ts';
import { EXAMPLE_TIME, Time } from '../openapi/describe.ts';

/** A signing secret that a caller gives. The control plane also checks that it fits the profile. */
export const Secret = (description: string) =>
  Type.String({
    pattern: SIGNING_SECRET.source,
    description,
    ...withMessage(
      'must be "whsec_" followed by 24 to 64 bytes in base64, or with standard-ed25519 "whsk_" followed by 64 bytes in base64',
    ),
  });

export const Rotation = Type.Object(
  {
    overlap_seconds: Type.Optional(
      Nullable(
        Type.Number({
          minimum: 0,
          maximum: 90 * 86_400,
          description:
            'How long the old secret still signs beside the new one. Null: until you revoke it (`DELETE …/secrets/previous`).',
        }),
      ),
    ),
    primary: Type.Optional(
      Type.Enum(['old', 'new'], {
        default: 'old',
        description:
          'With `github` and `hex`, whose header has room for one signature: which secret signs it. The signature of the other one is in `<header>-next` or `<header>-previous`.',
      }),
    ),
    switch_at: Type.Optional(
      Nullable(
        Type.String({
          pattern: RFC3339.source,
          description:
            'With `primary: "old"`: from this time on the new secret signs the main header. Null: when the old one stops signing.',
          ...withMessage(TIME_RULE),
        }),
      ),
    ),
    secret: Type.Optional(Secret('The new secret. Default: a random one.')),
  },
  { additionalProperties: false, title: 'Rotation', examples: [{ overlap_seconds: 3600 }] },
);
const secretFields = {
  secret: Type.String(),
  public_key: Type.Optional(
    Type.String({ description: 'The public key of an Ed25519 secret, which receivers verify with.' }),
  ),
};
const header = Nullable(Type.String({ description: 'The header that it signs now. Null: it signs none.' }));

export const RotatedSecret = Type.Object(
  {
    ...secretFields,
    secret: Nullable(
      Type.String({ description: 'Null with `standard-ed25519`: receivers need only `public_key`.' }),
    ),
    previous_expires_at: Nullable(Time),
    primary: Type.Enum(['old', 'new']),
    switch_at: Nullable(Time),
  },
  {
    title: 'RotatedSecret',
    examples: [{ secret: 'whsec_…', previous_expires_at: EXAMPLE_TIME, primary: 'old', switch_at: null }],
  },
);
export const CurrentSecret = Type.Object(
  {
    ...secretFields,
    created_at: Time,
    header,
    previous: Type.Array(Type.Object({ created_at: Time, expires_at: Nullable(Time), header }), {
      description: 'Older secrets that still sign.',
    }),
  },
  {
    title: 'CurrentSecret',
    examples: [{ secret: 'whsec_…', created_at: EXAMPLE_TIME, header: 'webhook-signature', previous: [] }],
  },
);
