import { Type } from 'typebox';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, Time } from '../openapi/describe.ts';

export const Rotation = Type.Object(
  {
    overlap_seconds: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 90 * 86_400,
        description: 'How long the old secret still signs beside the new one.',
      }),
    ),
    secret: Type.Optional(
      Type.String({ maxLength: 200, description: 'The new secret. Default: a random one.' }),
    ),
  },
  { additionalProperties: false, title: 'Rotation', examples: [{ overlap_seconds: 3600 }] },
);
const secretFields = {
  secret: Type.String(),
  public_key: Type.Optional(
    Type.String({ description: 'The public key of an Ed25519 secret, which receivers verify with.' }),
  ),
};
export const RotatedSecret = Type.Object(
  {
    ...secretFields,
    secret: Nullable(
      Type.String({ description: 'Null with `standard-ed25519`: receivers need only `public_key`.' }),
    ),
    previous_expires_at: Nullable(Time),
  },
  {
    title: 'RotatedSecret',
    examples: [{ secret: 'whsec_…', previous_expires_at: EXAMPLE_TIME }],
  },
);
export const CurrentSecret = Type.Object(
  {
    ...secretFields,
    created_at: Time,
    previous: Type.Array(Type.Object({ created_at: Time, expires_at: Nullable(Time) }), {
      description: 'Older secrets that still sign.',
    }),
  },
  {
    title: 'CurrentSecret',
    examples: [{ secret: 'whsec_…', created_at: EXAMPLE_TIME, previous: [] }],
  },
);
