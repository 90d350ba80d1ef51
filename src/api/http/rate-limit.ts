import { Type } from 'typebox';

/** The rate limit of a key or a tenant. */
export const RateLimitSchema = Type.Object(
  {
    per_second: Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000 }),
    burst: Type.Optional(
      Type.Number({
        minimum: 1,
        maximum: 1_000_000,
        description: 'How many at once after a quiet time. Default: one second’s worth.',
      }),
    ),
  },
  { additionalProperties: false },
);
