/** Limits that callers are held to. */
import { type Static, Type } from 'typebox';

export const RateLimitSchema = Type.Object(
  {
    per_second: Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000 }),
    burst: Type.Optional(
      Type.Number({ minimum: 1, maximum: 1_000_000, description: 'At once after a quiet time.' }),
    ),
  },
  { additionalProperties: false },
);

/** Unless it is said otherwise, one second's worth. */
export function burstOf({ per_second, burst }: Static<typeof RateLimitSchema>): number {
  return burst ?? Math.max(1, per_second);
}
