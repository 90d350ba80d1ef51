import { invalidField, type Problem } from '../domain/problem.ts';
import { MAX_LIVE_SECRETS } from '../postgres/queries/rotate-secret.ts';

/** `field`: what the caller asked for that adds a secret. */
export const tooManySecrets = (field: string): Problem =>
  invalidField(
    field,
    `${MAX_LIVE_SECRETS} secrets of this endpoint sign already: revoke the old ones (DELETE /v1/endpoints/{id}/secrets/previous), or use 0`,
  );
