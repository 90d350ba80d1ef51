/** `per_second` and `burst` of a rate limit, as callers give them. */
export interface RateLimitInput {
  readonly per_second: number;
  readonly burst?: number;
}

/** The burst of a rate limit. Default: one second's worth, at least 1. */
export function burstOf({ per_second, burst }: RateLimitInput): number {
  return burst ?? Math.max(1, per_second);
}
