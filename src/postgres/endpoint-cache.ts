import type { DisabledReason, Endpoint, SignatureSetting } from '../domain/endpoint.ts';
import { type EndpointConfig, type EndpointSettings, resolveSettings } from '../domain/endpoint-config.ts';
import { EndpointIndex } from '../domain/endpoint-index.ts';
import type { Uuid } from '../domain/ids.ts';
import { shareReads } from '../domain/share-reads.ts';
import type { EndpointDirectory } from '../ports/endpoint-directory.ts';
import { CachedEndpoint } from './cached-endpoint.ts';
import type { Pool } from './database.ts';
import { DeletedEndpoints } from './deleted-endpoints.ts';
import { NEWEST_SECRET_FIRST } from './queries/rotate-secret.ts';
import { openConfig, withoutSecrets } from './sealed-config.ts';
import { openUrl } from './sealed-settings.ts';
import type { SecretBox } from './secret-box.ts';
import { SharedValues } from './shared-values.ts';
import { withStoreErrors } from './store-error.ts';

export type EndpointCache = EndpointDirectory;

interface EndpointRow {
  id: Uuid;
  tenant: string;
  url: string;
  config: EndpointConfig;
  enabled: boolean;
  disabled_reason: DisabledReason | null;
  paused: boolean;
  deleted: boolean;
  shard: number | null;
  wanted_shard: number | null;
  placement: number;
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

type ChangedRow = { version: string; is_unknown: boolean } & (EndpointRow | { id: null });

const COLUMNS = `
  e.id, e.tenant, e.url, e.config, e.enabled, e.disabled_reason, e.paused, e.deleted_at is not null as deleted,
  e.shard, e.wanted_shard, e.placement,
  (select json_agg(json_build_object('key_id', s.key_id, 'ciphertext', encode(s.ciphertext, 'base64'),
                                     'expires_at', extract(epoch from s.expires_at) * 1000,
                                     'main_from', extract(epoch from s.main_from) * 1000,
                                     'signature', s.signature)
                   order by ${NEWEST_SECRET_FIRST})
     from posthorn.endpoint_secrets s
    where s.endpoint_id = e.id and (s.expires_at is null or s.expires_at > now())) as secrets`;

// One statement, so that the version and the endpoints belong together. The outer join returns the version even if no
// endpoint changed. If the database does not know our version, this is the first read, or the database was restored or
// replaced by a standby that was behind: no endpoint is returned, and all of them must be read.
const CHANGED_SINCE = {
  name: 'endpoints_changed_since',
  text: `
    with known as materialized (
      select coalesce((select h.version from posthorn.endpoint_versions h where h.version = $1), 0) as version
    )
    select v.version, (select version from known) = 0 as is_unknown, ${COLUMNS}
      from posthorn.subscription_version v
      left join posthorn.endpoints e on e.version > (select version from known) and (select version from known) > 0`,
};

// In pages: a million endpoints in one answer would exceed the statement timeout and block the event loop. A deleted
// endpoint matters only while it has waiting deliveries.
const PAGE_SIZE = 2_000;
const PAGE = {
  name: 'endpoints_page',
  text: `
    select ${COLUMNS} from posthorn.endpoints e
     where e.id > $1 and (e.deleted_at is null or exists (select from posthorn.queue q where q.endpoint_id = e.id))
     order by e.id limit ${PAGE_SIZE}`,
};
const BEFORE_ALL_IDS = '00000000-0000-0000-0000-000000000000';

export function createEndpointCache(
  pool: Pool,
  box: SecretBox,
  onUnreadable: (id: Uuid, error: unknown) => void,
): EndpointCache {
  const cached = new CachedEndpoints(pool, box);
  const { index } = cached;
  const listeners: ((changed: readonly Endpoint[]) => void)[] = [];
  const replacedListeners: (() => void)[] = [];
  let version = 0;
  let reads = 0;

  async function read(): Promise<void> {
    reads += 1;
    for (let hasReadAll = false; ; hasReadAll = true) {
      const { rows } = await withStoreErrors(pool.query<ChangedRow>({ ...CHANGED_SINCE, values: [version] }));
      const stored = Number(rows[0]!.version);
      if (!rows[0]!.is_unknown) {
        const changed = cached.addRows(
          rows.filter((row) => row.id !== null),
          pauseUnreadable,
        );
        version = stored;
        notify(changed);
        // The endpoints have been read, even if this fails. The next read repeats this.
        await cached.dropIdle().catch(() => {});
        return;
      }
      if (hasReadAll && stored === version) return;
      await readAll(stored);
    }
  }

  /** Reads all endpoints, as of `stored` or later. The next read returns those that changed meanwhile. */
  async function readAll(stored: number): Promise<void> {
    const changed: Endpoint[] = [];
    for (let after = BEFORE_ALL_IDS; ; ) {
      const { rows } = await withStoreErrors(pool.query<EndpointRow>({ ...PAGE, values: [after] }));
      for (const endpoint of cached.addRows(rows, pauseUnreadable)) changed.push(endpoint);
      if (rows.length < PAGE_SIZE) break;
      after = rows.at(-1)!.id;
    }
    const isReplaced = version !== 0;
    if (isReplaced) changed.push(...cached.markMissing(new Set(changed.map(({ id }) => id))));
    version = stored;
    notify(changed);
    if (isReplaced) for (const listener of replacedListeners) listener();
  }

  /** During the first read a secret that cannot be decrypted means that the encryption key is wrong. */
  function pauseUnreadable(id: Uuid, error: unknown): void {
    if (version === 0) throw error;
    onUnreadable(id, error);
  }

  function notify(changed: readonly Endpoint[]): void {
    if (changed.length > 0) for (const listener of listeners) listener(changed);
  }

  return {
    get version() {
      return version;
    },
    get reads() {
      return reads;
    },
    get: (id) => index.get(id),
    all: () => index.all(),
    ofShard: (shard) => index.ofShard(shard),
    operational: () => index.operational(),
    atInbox: (token) => index.atInbox(token),
    totalsOf: (tenant) => index.totalsOf(tenant),
    totalsOfShard: (shard) => index.totalsOfShard(shard),
    refresh: shareReads(read),
    onChange: (listener) => listeners.push(listener),
    onReplaced: (listener) => replacedListeners.push(listener),
    forget: (id) => cached.forget(id),
  };
}

/** The endpoints in memory, with those that are deleted and may still have deliveries. */
class CachedEndpoints {
  readonly index = new EndpointIndex<CachedEndpoint>();
  readonly #deleted: DeletedEndpoints;
  readonly #shared = new SharedValues();
  readonly #box: SecretBox;

  constructor(pool: Pool, box: SecretBox) {
    this.#deleted = new DeletedEndpoints(pool);
    this.#box = box;
  }

  /** Adds the endpoints of these rows, or replaces them. Returns them. */
  addRows(rows: readonly EndpointRow[], onUnreadable: Decryption['onUnreadable']): Endpoint[] {
    const decryption = { box: this.#box, shared: this.#shared, onUnreadable };
    const read = rows.map((row) => decryptOrPause(row, decryption));
    for (const endpoint of read) this.#add(endpoint);
    return read;
  }

  /** Endpoints that the store does not have any more count as deleted. Returns them. */
  markMissing(stored: ReadonlySet<Uuid>): Endpoint[] {
    const missing = [...this.index.all()]
      .filter(({ id, deleted }) => !deleted && !stored.has(id))
      .map((endpoint) => endpoint.asDeleted());
    for (const endpoint of missing) this.#add(endpoint);
    return missing;
  }

  /** Drops deleted endpoints that have no deliveries left. Throws `StoreError`. */
  async dropIdle(): Promise<void> {
    for (const id of await this.#deleted.takeIdle()) this.index.delete(id);
  }

  forget(id: Uuid): void {
    this.index.delete(id);
    this.#deleted.remove(id);
  }

  #add(endpoint: CachedEndpoint): void {
    this.index.set(endpoint);
    if (endpoint.deleted) this.#deleted.add(endpoint.id);
  }
}

interface Decryption {
  readonly box: SecretBox;
  readonly shared: SharedValues;
  /** May throw. Otherwise the endpoint is paused, so that the others keep working. */
  readonly onUnreadable: (id: Uuid, error: unknown) => void;
}

function decryptOrPause(row: EndpointRow, { box, shared, onUnreadable }: Decryption): CachedEndpoint {
  try {
    return toEndpoint(row, box, shared);
  } catch (error) {
    onUnreadable(row.id, error);
    const paused = { ...row, secrets: null, config: withoutSecrets(row.config), paused: true };
    return toEndpoint(paused, box, shared);
  }
}

/** The deliveries of a deleted endpoint are only skipped. That needs no secrets, and nothing that may be large. */
function configOfDeleted(config: EndpointConfig): EndpointConfig {
  const {
    events: _events,
    channels: _channels,
    filter: _filter,
    headers: _headers,
    plain_headers: _names,
    auth: _auth,
    tls: _tls,
    ...rest
  } = withoutSecrets(config);
  return rest;
}

function toEndpoint(row: EndpointRow, box: SecretBox, shared: SharedValues): CachedEndpoint {
  const { id } = row;
  const secrets = (row.deleted ? [] : (row.secrets ?? [])).map((sealed) => ({
    secret: box.open({ keyId: sealed.key_id, ciphertext: Buffer.from(sealed.ciphertext, 'base64') }, id),
    expiresAt: sealed.expires_at,
    mainFrom: sealed.main_from,
    signature: sealed.signature,
  }));
  return new CachedEndpoint(
    {
      id,
      tenant: shared.shareText(row.tenant),
      url: row.deleted ? row.url : openUrl(row, box),
      enabled: row.enabled,
      disabledReason: row.disabled_reason,
      paused: row.paused,
      deleted: row.deleted,
      shard: row.shard,
      wantedShard: row.wanted_shard,
      placement: row.placement,
    },
    row.deleted ? shared.shareSettings(configOfDeleted(row.config)) : settingsOf(row, box, shared),
    secrets,
  );
}

const SECRET_SETTINGS = ['headers', 'sealed_headers', 'auth', 'tls', 'sealed_settings'] as const;

function settingsOf({ id, config }: EndpointRow, box: SecretBox, shared: SharedValues): EndpointSettings {
  const hasSecrets = SECRET_SETTINGS.some((name) => config[name] !== undefined);
  const opened = hasSecrets ? openConfig(config, id, box) : config;
  const { events } = opened;
  const withSharedTypes = events === undefined ? opened : { ...opened, events: shared.shareList(events) };
  // Secrets must not stay in memory after their endpoint is gone.
  return hasSecrets ? resolveSettings(withSharedTypes) : shared.shareSettings(withSharedTypes);
}
