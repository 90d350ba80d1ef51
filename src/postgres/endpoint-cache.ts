import type { DisabledReason, Endpoint, SignatureSetting } from '../domain/endpoint.ts';
import { type EndpointConfig, resolveEndpoint } from '../domain/endpoint-config.ts';
import type { Uuid } from '../domain/ids.ts';
import type { EndpointDirectory } from '../ports/endpoint-directory.ts';
import type { Pool } from './database.ts';
import { NEWEST_SECRET_FIRST } from './queries/rotate-secret.ts';
import { openConfig, withoutSecrets } from './sealed-config.ts';
import type { SecretBox } from './secret-box.ts';
import { withStoreErrors } from './store-error.ts';

export type EndpointCache = EndpointDirectory;

interface EndpointRow {
  version: string;
  /** The row is one of all endpoints, not of those that changed. */
  is_full: boolean;
  id: Uuid | null;
  tenant: string;
  url: string;
  config: EndpointConfig;
  enabled: boolean;
  disabled_reason: DisabledReason | null;
  paused: boolean;
  deleted: boolean;
  secrets:
    | {
        key_id: string;
        ciphertext: string;
        expires_at: number | null;
        main_from: number | null;
        signature: SignatureSetting | null;
      }[]
    | null;
}

// One statement, so that the version and the endpoints belong together. The outer join returns the version even if no
// endpoint changed. A deleted endpoint matters only while it has waiting deliveries. If the database does not know our
// version, it was restored or replaced by a standby that was behind: all endpoints are returned.
const CHANGED_SINCE = {
  name: 'endpoints_changed_since',
  text: `
    with known as materialized (
      select coalesce((select h.version from posthorn.endpoint_versions h where h.version = $1), 0) as version
    )
    select v.version, (select version from known) = 0 as is_full, e.id, e.tenant, e.url, e.config, e.enabled, e.disabled_reason, e.paused,
           e.deleted_at is not null as deleted,
           (select json_agg(json_build_object('key_id', s.key_id, 'ciphertext', encode(s.ciphertext, 'base64'),
                                              'expires_at', extract(epoch from s.expires_at) * 1000,
                                              'main_from', extract(epoch from s.main_from) * 1000,
                                              'signature', s.signature)
                            order by ${NEWEST_SECRET_FIRST})
              from posthorn.endpoint_secrets s
             where s.endpoint_id = e.id and (s.expires_at is null or s.expires_at > now())) as secrets
      from posthorn.subscription_version v
      left join posthorn.endpoints e
        on e.version > (select version from known)
       and ((select version from known) > 0 or e.deleted_at is null or exists (select from posthorn.queue q where q.endpoint_id = e.id))`,
};

export function createEndpointCache(
  pool: Pool,
  box: SecretBox,
  onUnreadable: (id: Uuid, error: unknown) => void,
): EndpointCache {
  const endpoints = new Map<Uuid, Endpoint>();
  const listeners: ((changed: readonly Endpoint[]) => void)[] = [];
  const replacedListeners: (() => void)[] = [];
  let version = 0;
  let reads = 0;
  let runningRead: Promise<void> | null = null;
  let nextRead: Promise<void> | null = null;

  async function read(): Promise<void> {
    const { rows } = await withStoreErrors(pool.query<EndpointRow>({ ...CHANGED_SINCE, values: [version] }));
    reads += 1;
    const changed: Endpoint[] = [];
    for (const row of rows) {
      if (row.id === null) continue;
      const endpoint = decryptOrPause(row);
      endpoints.set(endpoint.id, endpoint);
      changed.push(endpoint);
    }
    const isReplaced = version !== 0 && rows[0]!.is_full;
    if (isReplaced) changed.push(...markMissing(new Set(changed.map(({ id }) => id))));
    version = Number(rows[0]!.version);
    if (changed.length > 0) for (const listener of listeners) listener(changed);
    if (isReplaced) for (const listener of replacedListeners) listener();
  }

  /** Endpoints that the store does not have any more count as deleted. Returns them. */
  function markMissing(stored: ReadonlySet<Uuid>): Endpoint[] {
    const missing = [...endpoints.values()]
      .filter(({ id, deleted }) => !deleted && !stored.has(id))
      .map((endpoint) => ({ ...endpoint, deleted: true }));
    for (const endpoint of missing) endpoints.set(endpoint.id, endpoint);
    return missing;
  }

  /**
   * Throws at the start if a secret cannot be decrypted, because the key is wrong. Later only one endpoint is
   * concerned, and it is treated as paused.
   */
  function decryptOrPause(row: EndpointRow): Endpoint {
    try {
      return toEndpoint(row, box);
    } catch (error) {
      if (version === 0) throw error;
      onUnreadable(row.id!, error);
      return toEndpoint({ ...row, secrets: null, config: withoutSecrets(row.config), paused: true }, box);
    }
  }

  /** A runningRead read may have started before the caller's change, so the caller waits for the next one. */
  function refresh(): Promise<void> {
    if (runningRead === null) {
      runningRead = read().finally(() => {
        runningRead = null;
      });
      return runningRead;
    }
    nextRead ??= runningRead
      .catch(() => {})
      .then(() => {
        nextRead = null;
        return refresh();
      });
    return nextRead;
  }

  return {
    get version() {
      return version;
    },
    get reads() {
      return reads;
    },
    get: (id) => endpoints.get(id),
    all: () => endpoints.values(),
    refresh,
    onChange: (listener) => listeners.push(listener),
    onReplaced: (listener) => replacedListeners.push(listener),
    forget: (id) => void endpoints.delete(id),
  };
}

function toEndpoint(row: EndpointRow, box: SecretBox): Endpoint {
  const id = row.id!;
  // The deliveries of a deleted endpoint are only skipped, which needs no secrets.
  const config = row.deleted ? withoutSecrets(row.config) : openConfig(row.config, id, box);
  const secrets = (row.deleted ? [] : (row.secrets ?? [])).map((sealed) => ({
    secret: box.open({ keyId: sealed.key_id, ciphertext: Buffer.from(sealed.ciphertext, 'base64') }, id),
    expiresAt: sealed.expires_at,
    mainFrom: sealed.main_from,
    signature: sealed.signature,
  }));
  return resolveEndpoint(
    {
      id,
      tenant: row.tenant,
      url: row.url,
      config,
      enabled: row.enabled,
      disabledReason: row.disabled_reason,
      paused: row.paused,
      deleted: row.deleted,
    },
    secrets,
  );
}
