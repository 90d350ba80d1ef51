import { idPrefixes, publicId } from '../../domain/ids.ts';
import type { KeyRecord } from '../../postgres/queries/keys.ts';
import type { Shown } from '../openapi/describe.ts';
import type { KeySchema } from './schema.ts';

export function showKey(key: KeyRecord): Shown<typeof KeySchema> {
  return {
    id: publicId(idPrefixes.key, key.id),
    scope: key.scope,
    scopes: key.scopes,
    tenant: key.tenant,
    description: key.description,
    prefix: key.prefix,
    created_at: key.created_at,
    last_used_at: key.last_used_at,
    rate_limit:
      key.rate_per_second === null || key.rate_burst === null
        ? null
        : { per_second: key.rate_per_second, burst: key.rate_burst },
    expires_at: key.expires_at,
    allowed_ips: key.allowed_ips,
  };
}
