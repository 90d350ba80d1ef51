/**
 * Written by `npm run client:generate` from the OpenAPI document: do not edit.
 */
import { type PageRequest, Resource } from './resource.ts';
import type { RequestOptions, Transport } from './transport.ts';

/** A time in RFC 3339 and UTC. */
export type Time = string;

export interface AcceptedBatch {
  results: (AcceptedEvent | RefusedEvent)[];
}

export interface AcceptedEvent {
  id: string;
  type: string;
  tenant: string;
  created_at: Time;
  /** How many endpoints it is sent to. Disabled ones do not count. */
  deliveries: number;
  unmatched_reason: 'no_endpoint' | 'filtered' | 'disabled' | null;
  /** True: an event with the same idempotency key was accepted before, and this is that event. */
  duplicate: boolean;
}

export interface Alive {
  status: 'ok';
}

export interface ArchiveRestore {
  event_id?: string;
  /** Restores everything of this day (UTC), such as `2026-11-15`. */
  day?: string;
}

export interface AsPublished {
  status: 'as_published';
  /** `no_versions`: the type has none. `no_matching_version`: none fits `api_version` of the endpoint. `no_converter`: no converters lead to it. */
  reason: 'no_versions' | 'no_matching_version' | 'no_converter';
}

export interface Attempt {
  delivery_id: string;
  number: number;
  started_at: Time;
  duration_ms: number;
  timing: {
    dns_ms: number | null;
    connect_ms: number | null;
    tls_ms: number | null;
    first_byte_ms: number | null;
  };
  status_code: number | null;
  /** The result. `superseded`: another worker had taken over the delivery. */
  outcome: 'delivered' | 'retry' | 'dead' | 'superseded';
  error: {
    class: 'dns_failed' | 'egress_forbidden' | 'connect_refused' | 'connect_timeout' | 'connection_failed' | 'connection_reset' | 'tls_expired' | 'tls_name_mismatch' | 'tls_untrusted' | 'tls_failed' | 'timeout' | 'response_invalid' | 'response_headers_too_large' | 'http_1xx' | 'http_3xx' | 'redirect_failed' | 'http_4xx' | 'http_408' | 'http_410' | 'http_429' | 'http_5xx' | 'oauth_failed' | 'oauth_rejected' | 'batch_event_failed' | 'batch_result_invalid' | 'mail_failed' | 'mail_rejected' | 'conversion_failed' | 'proxy_failed' | 'internal';
    message: string | null;
    hint: string | null;
  } | null;
  conversion: Conversion | null;
  /** The address that answered, after redirects. */
  url: string;
  request_headers: Record<string, string>;
  response_headers: Record<string, string> | null;
  response_body: string | null;
  response_truncated: boolean;
  trigger: 'auto' | 'replay' | 'test';
  batch_id: string | null;
  /** The process that made the attempt. */
  worker: string;
}

export interface AttemptPage {
  data: Attempt[];
  next_cursor: string | null;
}

export interface AuditEntry {
  id: string;
  created_at: Time;
  action: string;
  tenant: string | null;
  /** Who made the change: a key, a person who signed in, or Posthorn. A tenant sees the id "operator" instead of the operator's keys and people. */
  actor: {
    id: string;
    prefix: string | null;
    scope: string;
  };
  object: {
    type: string;
    id: string | null;
  };
  changes: {
    field: string;
    before?: unknown;
    after?: unknown;
  }[];
  /** Empty if Posthorn made the change by itself. */
  request_id: string;
  /** The IP address of the caller. Empty if Posthorn made the change by itself, and for a tenant if the operator made it. */
  address: string;
}

export interface AuditEntryPage {
  data: AuditEntry[];
  next_cursor: string | null;
}

export interface BasicAuth {
  type: 'basic';
  username: string;
  password: '[redacted]';
}

export interface Batch {
  /** A request carries at most this many events. */
  max_events: number;
  /** A batch that is not full is sent when its oldest event has waited for this long. */
  max_wait_ms: number;
  /** Maximum size of the body. A larger event goes alone. */
  max_bytes: number;
  /** True: a batch that the receiver rejects (4xx) is sent again in halves, until the rejected event is alone. */
  split_rejected: boolean;
}

export interface BearerAuth {
  type: 'bearer';
  token: '[redacted]';
}

export interface Breaker {
  consecutive: number;
  failure_rate: number;
  min_requests: number;
  window_seconds: number;
  cooldown_seconds: number;
  max_cooldown_seconds: number;
}

export interface ChangedEndpoint {
  id: string;
  tenant: string;
  url: string;
  description: string;
  /** Event types, prefixes such as `order.*`, or `*`. */
  events: string[];
  channels: string[];
  filter: Record<string, unknown> | null;
  enabled: boolean;
  disabled_reason: 'manual' | 'gone' | 'failing' | 'dead_letters' | null;
  paused: boolean;
  api_version: string | null;
  payload: 'full' | 'thin';
  /** `[redacted]` instead of a value that the key may not read: credentials, and for a read key all values but those of `plain_headers`. */
  headers: Record<string, string>;
  plain_headers: string[];
  auth: BasicAuth | BearerAuth | OAuth2 | null;
  tls: ClientCertificate | null;
  signature: 'standard' | 'standard-ed25519' | 'hex' | 'stripe' | 'github' | {
    profile: 'standard' | 'standard-ed25519' | 'hex' | 'stripe' | 'github';
    header?: string | null;
    prefix?: string | null;
  };
  public_key: string | null;
  retry: ScheduledRetry | ExponentialRetry;
  breaker: Breaker | null;
  timeout_ms: number;
  max_in_flight: number;
  adaptive: 'on' | 'off';
  rate_limit: {
    per_second: number;
    burst: number;
  } | null;
  region: string | null;
  ordering: 'none' | 'fifo';
  fifo_on_dead: 'skip' | 'block';
  follow_redirects: number;
  /** True: the endpoint gets the operational events of all tenants. */
  operator: boolean;
  challenge: 'echo' | 'cloudevents' | null;
  batch: Batch | null;
  debounce: Debounce | null;
  metadata: Record<string, unknown>;
  /** The secrets that sign, the current one first. `expires_at` null: until it is revoked. `switch_at`: from when on it signs the main header. */
  signing_secrets: ({
    created_at: Time;
    expires_at: Time | null;
    header: string | null;
    switch_at: Time | null;
  })[];
  health: Health;
  created_at: Time;
  updated_at: Time;
  /** Settings that are valid and probably a mistake: an event type that the catalogue does not have, a filter operator without `$`, a second endpoint with the same URL. */
  warnings: {
    path: string;
    message: string;
  }[];
}

export interface ClientCertificate {
  cert: string;
  key: '[redacted]';
  ca: string | null;
}

export interface Compatibility {
  /** The version that was created before. */
  against: string;
  verdict: 'additive' | 'breaking';
  changes: ({
    /** The path that has changed, such as `lines[].sku`. Empty: the payload itself. */
    path: string;
    kind: 'added' | 'removed' | 'renamed' | 'type_changed' | 'type_narrowed' | 'required' | 'optional' | 'enum_narrowed' | 'enum_widened' | 'tightened' | 'loosened' | 'undecided';
    breaking: boolean;
    message: string;
  })[];
  /** How to make the changes safely. */
  advice: string[];
}

/** How the payload for an endpoint with `api_version` was converted. Null: it was sent as it was published, in the version that the endpoint pins. */
export type Conversion = Converted | AsPublished;

export interface Converted {
  status: 'converted';
  /** The version that the event was written in. */
  from: string;
  /** The version that was sent. */
  to: string;
  /** Hash of the converters. */
  converter: string;
}

export interface Count {
  count: number;
  /** There may be more: only the newest 100,000 were examined. */
  more: boolean;
  /** How many of them a replay leaves out, because their endpoint is disabled or was deleted. */
  left_out: number;
}

export interface CreatedEndpoint {
  id: string;
  tenant: string;
  url: string;
  description: string;
  /** Event types, prefixes such as `order.*`, or `*`. */
  events: string[];
  channels: string[];
  filter: Record<string, unknown> | null;
  enabled: boolean;
  disabled_reason: 'manual' | 'gone' | 'failing' | 'dead_letters' | null;
  paused: boolean;
  api_version: string | null;
  payload: 'full' | 'thin';
  /** `[redacted]` instead of a value that the key may not read: credentials, and for a read key all values but those of `plain_headers`. */
  headers: Record<string, string>;
  plain_headers: string[];
  auth: BasicAuth | BearerAuth | OAuth2 | null;
  tls: ClientCertificate | null;
  signature: 'standard' | 'standard-ed25519' | 'hex' | 'stripe' | 'github' | {
    profile: 'standard' | 'standard-ed25519' | 'hex' | 'stripe' | 'github';
    header?: string | null;
    prefix?: string | null;
  };
  public_key: string | null;
  retry: ScheduledRetry | ExponentialRetry;
  breaker: Breaker | null;
  timeout_ms: number;
  max_in_flight: number;
  adaptive: 'on' | 'off';
  rate_limit: {
    per_second: number;
    burst: number;
  } | null;
  region: string | null;
  ordering: 'none' | 'fifo';
  fifo_on_dead: 'skip' | 'block';
  follow_redirects: number;
  /** True: the endpoint gets the operational events of all tenants. */
  operator: boolean;
  challenge: 'echo' | 'cloudevents' | null;
  batch: Batch | null;
  debounce: Debounce | null;
  metadata: Record<string, unknown>;
  /** The secrets that sign, the current one first. `expires_at` null: until it is revoked. `switch_at`: from when on it signs the main header. */
  signing_secrets: ({
    created_at: Time;
    expires_at: Time | null;
    header: string | null;
    switch_at: Time | null;
  })[];
  health: Health;
  created_at: Time;
  updated_at: Time;
  /** Settings that are valid and probably a mistake: an event type that the catalogue does not have, a filter operator without `$`, a second endpoint with the same URL. */
  warnings: {
    path: string;
    message: string;
  }[];
  secret: string | null;
}

export interface CreatedKey {
  id: string;
  scope: 'admin' | 'tenant' | 'read';
  scopes: ('events:publish' | 'events:read' | 'deliveries:read' | 'deliveries:replay' | 'endpoints:read' | 'endpoints:write' | 'secrets:read' | 'catalogue:read' | 'catalogue:write')[] | null;
  tenant: string | null;
  description: string;
  /** The first characters of the key, to recognize it by. */
  prefix: string;
  created_at: Time;
  last_used_at: Time | null;
  rate_limit: {
    per_second: number;
    burst: number;
  } | null;
  expires_at: Time | null;
  allowed_ips: string[] | null;
  /** The key itself. It is shown here and never again. */
  key: string;
}

export interface CreatedPortalSession {
  id: string;
  tenant: string;
  /** The only things that the session may do. */
  capabilities: ('events:publish' | 'events:read' | 'deliveries:read' | 'deliveries:replay' | 'endpoints:read' | 'endpoints:write' | 'secrets:read' | 'catalogue:read')[];
  description: string;
  /** The first characters of the token, to recognize it by. */
  prefix: string;
  created_at: Time;
  last_used_at: Time | null;
  expires_at: Time;
  /** Opens the console for this session. It contains the token behind `#`, so browsers do not send it to servers. Shown here and never again. */
  url: string;
  /** Works as an API key until the session ends. Shown here and never again. */
  token: string;
}

export interface CurrentKey {
  id: string | null;
  scope: 'admin' | 'tenant' | 'read';
  scopes: ('events:publish' | 'events:read' | 'deliveries:read' | 'deliveries:replay' | 'endpoints:read' | 'endpoints:write' | 'secrets:read' | 'catalogue:read' | 'catalogue:write')[] | null;
  tenant: string | null;
  /** The first characters of the key, to recognize it by. */
  prefix: string;
  user: string | null;
  capabilities: {
    /** Whether there is a built-in receiver. */
    inbox: boolean;
  };
}

export interface CurrentSecret {
  secret: string;
  /** The public key of an Ed25519 secret, which receivers verify with. */
  public_key?: string;
  created_at: Time;
  header: string | null;
  /** Older secrets that still sign. */
  previous: ({
    created_at: Time;
    expires_at: Time | null;
    header: string | null;
  })[];
}

export interface DeadLetterGroups {
  data: ({
    endpoint_id: string;
    url: string | null;
    description: string | null;
    tenant: string;
    reason: 'exhausted' | 'rejected' | 'gone' | 'expired' | 'worker_crash';
    count: number;
    oldest_at: Time;
    newest_at: Time;
  })[];
  next_cursor: null;
  /** There are older dead letters that were not counted. */
  more: boolean;
}

export interface DeadLetterOrder {
  filter: {
    /** Selects only what belongs to this tenant. */
    tenant?: string;
    /** Selects only deliveries to this endpoint. */
    endpoint_id?: string;
    /** Selects only deliveries of this event. */
    event_id?: string;
    /** Selects only events of this type, or deliveries of such events. */
    type?: string;
    /** Selects what Posthorn accepted at or after this RFC 3339 time. */
    since?: string;
    /** Selects what Posthorn accepted before this RFC 3339 time. */
    until?: string;
    /** Tasks never change dead letters that are being replayed. */
    status?: 'dead';
    reason?: 'exhausted' | 'rejected' | 'gone' | 'expired' | 'worker_crash';
    /** Selects only these deliveries. */
    ids?: string[];
  };
  /** True: only counts the deliveries. */
  dry_run?: boolean;
  /** Posthorn records it with each discarded delivery. */
  why?: string;
}

export interface Debounce {
  /** Path of the value that events have in common, such as `data.order_id`. Events without a value are sent as they are. */
  key: string;
  /** Posthorn sends one of the events with the same key that it accepts within this time. */
  window_ms: number;
  /** `last`: the last one, when no other has come for `window_ms`. `first`: the first one, at once. */
  mode: 'last' | 'first';
  /** Mode `last`: a steady stream of events is held back for at most this long. Default: ten times `window_ms`. */
  max_wait_ms: number;
}

export interface Delivery {
  id: string;
  event_id: string;
  endpoint_id: string;
  tenant: string;
  event_type: string;
  status: 'pending' | 'retrying' | 'delivered' | 'dead' | 'discarded' | 'skipped';
  /** Number of attempts so far. */
  attempts: number;
  max_attempts: number | null;
  next_attempt_at: Time | null;
  last_status_code: number | null;
  last_error: string | null;
  waiting_reason: 'schedule' | 'circuit_open' | 'rate_limited' | 'paused' | 'ordering' | null;
  reason: string | null;
  discard: {
    why: string | null;
    reason: string;
    dead_at: Time;
  } | null;
  batch_id: string | null;
  debounced_by: string | null;
  replaying: boolean;
  replays: number;
  created_at: Time;
  delivered_at: Time | null;
  dead_at: Time | null;
}

export interface DeliveryPage {
  data: Delivery[];
  next_cursor: string | null;
}

export interface Discard {
  /** Posthorn records it with the delivery. */
  why?: string;
}

export interface Endpoint {
  id: string;
  tenant: string;
  url: string;
  description: string;
  /** Event types, prefixes such as `order.*`, or `*`. */
  events: string[];
  channels: string[];
  filter: Record<string, unknown> | null;
  enabled: boolean;
  disabled_reason: 'manual' | 'gone' | 'failing' | 'dead_letters' | null;
  paused: boolean;
  api_version: string | null;
  payload: 'full' | 'thin';
  /** `[redacted]` instead of a value that the key may not read: credentials, and for a read key all values but those of `plain_headers`. */
  headers: Record<string, string>;
  plain_headers: string[];
  auth: BasicAuth | BearerAuth | OAuth2 | null;
  tls: ClientCertificate | null;
  signature: 'standard' | 'standard-ed25519' | 'hex' | 'stripe' | 'github' | {
    profile: 'standard' | 'standard-ed25519' | 'hex' | 'stripe' | 'github';
    header?: string | null;
    prefix?: string | null;
  };
  public_key: string | null;
  retry: ScheduledRetry | ExponentialRetry;
  breaker: Breaker | null;
  timeout_ms: number;
  max_in_flight: number;
  adaptive: 'on' | 'off';
  rate_limit: {
    per_second: number;
    burst: number;
  } | null;
  region: string | null;
  ordering: 'none' | 'fifo';
  fifo_on_dead: 'skip' | 'block';
  follow_redirects: number;
  /** True: the endpoint gets the operational events of all tenants. */
  operator: boolean;
  challenge: 'echo' | 'cloudevents' | null;
  batch: Batch | null;
  debounce: Debounce | null;
  metadata: Record<string, unknown>;
  /** The secrets that sign, the current one first. `expires_at` null: until it is revoked. `switch_at`: from when on it signs the main header. */
  signing_secrets: ({
    created_at: Time;
    expires_at: Time | null;
    header: string | null;
    switch_at: Time | null;
  })[];
  health: Health;
  created_at: Time;
  updated_at: Time;
}

export interface EndpointPage {
  data: Endpoint[];
  next_cursor: string | null;
}

export interface EndpointPatch {
  /** The address that gets the requests: https, unless the operator allows http. */
  url?: string;
  description?: string | null;
  metadata?: Record<string, unknown> | null;
  enabled?: boolean | null;
  paused?: boolean | null;
  events?: string[] | null;
  channels?: string[] | null;
  filter?: Record<string, unknown> | null;
  api_version?: string | null;
  payload?: 'full' | 'thin' | null;
  headers?: Record<string, string | null> | null;
  plain_headers?: string[] | null;
  auth?: {
    type: 'basic';
    username: string;
    password: string;
  } | {
    type: 'bearer';
    token: string;
  } | {
    type: 'oauth2';
    token_url: string;
    client_id: string;
    client_secret: string;
    scope?: string | null;
  } | null;
  tls?: {
    /** PEM: the certificate, then its chain. */
    cert: string;
    /** PEM: its private key. */
    key: string;
    ca?: string | null;
  } | null;
  signature?: 'standard' | 'standard-ed25519' | 'hex' | 'stripe' | 'github' | {
    profile: 'standard' | 'standard-ed25519' | 'hex' | 'stripe' | 'github';
    header?: string;
    prefix?: string;
  } | null;
  retry?: {
    preset?: 'default' | 'standard-webhooks' | 'minute' | 'fast' | 'patient' | 'day';
    /** Seconds before each attempt, the first included. */
    schedule?: number[];
    /** Seconds before the first retry. */
    base?: number;
    factor?: number;
    max?: number;
    attempts?: number;
    jitter?: 'full' | 'equal' | 'proportional' | 'none';
    max_age_seconds?: number;
    permanent?: (number | '1xx' | '2xx' | '3xx' | '4xx' | '5xx')[];
    transient?: (number | '1xx' | '2xx' | '3xx' | '4xx' | '5xx')[];
  } | null;
  breaker?: {
    consecutive?: number;
    failure_rate?: number;
    min_requests?: number;
    window_seconds?: number;
    cooldown_seconds?: number;
    max_cooldown_seconds?: number;
  } | null;
  timeout_ms?: number | null;
  max_in_flight?: number | null;
  adaptive?: 'on' | 'off' | null;
  rate_limit?: {
    per_second: number;
    burst?: number;
  } | null;
  region?: string | null;
  ordering?: 'none' | 'fifo' | null;
  fifo_on_dead?: 'skip' | 'block' | null;
  follow_redirects?: number | null;
  challenge?: 'echo' | 'cloudevents' | null;
  operator?: boolean | null;
  batch?: {
    /** A request carries at most this many events. */
    max_events?: number;
    /** A batch that is not full is sent when its oldest event has waited for this long. */
    max_wait_ms?: number;
    /** Maximum size of the body. A larger event goes alone. */
    max_bytes?: number;
    /** True: a batch that the receiver rejects (4xx) is sent again in halves, until the rejected event is alone. */
    split_rejected?: boolean;
  } | null;
  debounce?: {
    /** Path of the value that events have in common, such as `data.order_id`. Events without a value are sent as they are. */
    key: string;
    /** Posthorn sends one of the events with the same key that it accepts within this time. */
    window_ms: number;
    /** `last`: the last one, when no other has come for `window_ms`. `first`: the first one, at once. */
    mode?: 'last' | 'first';
    /** Mode `last`: a steady stream of events is held back for at most this long. Default: ten times `window_ms`. */
    max_wait_ms?: number;
  } | null;
  /** Read-only. May be sent with the value that it has. */
  id?: unknown;
  /** Read-only. May be sent with the value that it has. */
  tenant?: unknown;
  /** Read-only. May be sent with the value that it has. */
  disabled_reason?: unknown;
  /** Read-only. May be sent with the value that it has. */
  created_at?: unknown;
  /** Read-only. Ignored if it is sent. */
  updated_at?: unknown;
  /** Read-only. Ignored if it is sent. */
  health?: unknown;
  /** Read-only. Ignored if it is sent. */
  public_key?: unknown;
  /** Read-only. Ignored if it is sent. */
  signing_secrets?: unknown;
  /** Read-only. Ignored if it is sent. */
  warnings?: unknown;
}

export interface EndpointReplay {
  /** Selects what Posthorn accepted at or after this RFC 3339 time. */
  since?: string;
  /** Selects what Posthorn accepted before this RFC 3339 time. */
  until?: string;
  status?: 'pending' | 'retrying' | 'delivered' | 'dead' | 'discarded' | 'skipped' | ('pending' | 'retrying' | 'delivered' | 'dead' | 'discarded' | 'skipped')[];
  /** True: only counts the deliveries. */
  dry_run?: boolean;
}

export interface EndpointStats {
  window: '1h' | '24h' | '7d' | null;
  from: Time;
  to: Time;
  /** How long one point of `series` is. */
  bucket_seconds: number;
  attempts: number;
  successes: number;
  failures: number;
  retried: number;
  delivered: number;
  dead: number;
  attempt_success_rate: number | null;
  final_success_rate: number | null;
  first_attempt_success_rate: number | null;
  dead_letter_rate: number | null;
  /** Deliveries per second. */
  throughput_per_second: number;
  /** How long receivers took to answer. Accurate to 9.1 %. */
  response_ms: {
    p50: number | null;
    p95: number | null;
    p99: number | null;
  };
  /** From acceptance to delivery. Accurate to 9.1 %. */
  delivery_ms: {
    p50: number | null;
    p95: number | null;
    p99: number | null;
  };
  /** How many were delivered at the first attempt, the second, and so on; the tenth and later ones together. */
  retry_distribution: number[];
  success_rate: number | null;
  p50_ms: number | null;
  p95_ms: number | null;
  p99_ms: number | null;
  now: {
    waiting: number;
    oldest_waiting_seconds: number | null;
    dead: number;
    circuit: 'closed' | 'open' | 'half_open';
  };
  series: ({
    at: Time;
    accepted: null;
    attempts: number;
    successes: number;
    failures: number;
    delivered: number;
    dead: number;
    success_rate: number | null;
    response_p50_ms: number | null;
    response_p95_ms: number | null;
    response_p99_ms: number | null;
    delivery_p50_ms: number | null;
    delivery_p95_ms: number | null;
    delivery_p99_ms: number | null;
  })[];
  hours: ({
    hour: Time;
    attempts: number;
    successes: number;
    failures: number;
    retried: number;
    delivered: number;
    dead: number;
    success_rate: number | null;
    p50_ms: number | null;
    p95_ms: number | null;
    p99_ms: number | null;
    dead_letter_rate: number | null;
    /** How many were delivered at the first attempt, the second, and so on; the tenth and later ones together. */
    retry_distribution: number[];
  })[];
}

export interface Event {
  id: string;
  type: string;
  tenant: string;
  created_at: Time;
  outcome: EventOutcome | null;
  /** How many endpoints it is sent to. Disabled ones do not count. */
  deliveries: number;
  /** How many endpoints matched it but were disabled when it was accepted. */
  skipped: number;
  unmatched_reason: 'no_endpoint' | 'filtered' | 'disabled' | null;
  idempotency_key: string | null;
  schema_version: string | null;
  /** Why its payload did not match the catalogue when it was accepted. Empty: it did, or was not checked. */
  schema_errors: {
    path: string;
    message: string;
  }[];
  channels: string[];
  endpoint_ids: string[] | null;
  deliver_at: Time | null;
  headers: Record<string, string>;
  duplicate_of: string | null;
  key_conflict_with: string | null;
  expunged_at: Time | null;
  expunged_by: string | null;
}

/** How many deliveries have each status. Null in lists for an event with more than 1,000 deliveries, and for the oldest events of a page that has more than 20,000 deliveries. */
export interface EventOutcome {
  delivered: number;
  retrying: number;
  pending: number;
  dead: number;
  skipped: number;
  discarded: number;
}

export interface EventPage {
  data: Event[];
  next_cursor: string | null;
}

export interface EventReplay {
  endpoint_ids?: string[];
  status?: 'pending' | 'retrying' | 'delivered' | 'dead' | 'discarded' | 'skipped' | ('pending' | 'retrying' | 'delivered' | 'dead' | 'discarded' | 'skipped')[];
  /** True: counts the deliveries, and sends nothing. */
  dry_run?: boolean;
}

export interface EventType {
  name: string;
  description: string;
  schema: Record<string, unknown> | boolean | null;
  example: unknown;
  deprecated: boolean;
  sunset_at: Time | null;
  validation: 'off' | 'warn' | 'strict' | null;
  latest_version: string | null;
  created_at: Time;
  updated_at: Time;
}

export interface EventTypePage {
  data: EventType[];
  next_cursor: string | null;
}

export interface EventTypeSettings {
  description?: string;
  schema?: Record<string, unknown> | boolean | null;
  /** A sample of `data`. It must match the schema. */
  example?: unknown;
  deprecated?: boolean;
  sunset_at?: Time | null;
  validation?: 'off' | 'warn' | 'strict' | null;
  /** Read-only. May be sent with the value that it has. */
  name?: unknown;
  /** Read-only. May be sent with the value that it has. */
  created_at?: unknown;
  /** Read-only. Ignored if it is sent. */
  latest_version?: unknown;
  /** Read-only. Ignored if it is sent. */
  updated_at?: unknown;
}

export interface EventTypeTried {
  valid: boolean;
  version: string | null;
  errors: {
    path: string;
    message: string;
  }[];
  /** The payload in `to_version`. Null: there is none. */
  converted: unknown;
  conversion_error: string | null;
}

export interface EventTypeTry {
  /** The payload to check. */
  data: unknown;
  from_version?: string | null;
  to_version?: string | null;
}

export interface EventTypeVersion {
  event_type: string;
  version: string;
  description: string;
  changelog: string;
  schema: Record<string, unknown> | boolean | null;
  example: unknown;
  /** `draft`: not published yet. `active`: in use. `deprecated`: still in use, to be replaced. `retired`: no longer published. */
  status: 'draft' | 'active' | 'deprecated' | 'retired';
  sunset_at: Time | null;
  /** True for the version that events without `schema_version` get. */
  latest: boolean;
  created_at: Time;
  updated_at: Time;
}

export interface EventTypeVersionChecked {
  refusal: string | null;
  compatibility: Compatibility | null;
}

export interface EventTypeVersionList {
  data: EventTypeVersion[];
  latest: string | null;
  /** There is one page only. */
  next_cursor: null;
}

export interface EventTypeVersionSettings {
  description?: string;
  /** What has changed since the version before. */
  changelog?: string;
  schema?: Record<string, unknown> | boolean | null;
  /** A sample of `data`. It must match the schema. */
  example?: unknown;
  /** `draft`: not published yet. `active`: in use. `deprecated`: still in use, to be replaced. `retired`: no longer published. */
  status?: 'draft' | 'active' | 'deprecated' | 'retired';
  sunset_at?: Time | null;
  /** Read-only. May be sent with the value that it has. */
  event_type?: unknown;
  /** Read-only. May be sent with the value that it has. */
  version?: unknown;
  /** Read-only. May be sent with the value that it has. */
  created_at?: unknown;
  /** Read-only. Ignored if it is sent. */
  latest?: unknown;
  /** Read-only. Ignored if it is sent. */
  compatibility?: unknown;
  /** Read-only. Ignored if it is sent. */
  updated_at?: unknown;
}

export interface EventTypeVersionStored {
  event_type: string;
  version: string;
  description: string;
  changelog: string;
  schema: Record<string, unknown> | boolean | null;
  example: unknown;
  /** `draft`: not published yet. `active`: in use. `deprecated`: still in use, to be replaced. `retired`: no longer published. */
  status: 'draft' | 'active' | 'deprecated' | 'retired';
  sunset_at: Time | null;
  /** True for the version that events without `schema_version` get. */
  latest: boolean;
  created_at: Time;
  updated_at: Time;
  compatibility: Compatibility | null;
}

export interface EventWithData {
  id: string;
  type: string;
  tenant: string;
  created_at: Time;
  outcome: EventOutcome | null;
  /** How many endpoints it is sent to. Disabled ones do not count. */
  deliveries: number;
  /** How many endpoints matched it but were disabled when it was accepted. */
  skipped: number;
  unmatched_reason: 'no_endpoint' | 'filtered' | 'disabled' | null;
  idempotency_key: string | null;
  schema_version: string | null;
  /** Why its payload did not match the catalogue when it was accepted. Empty: it did, or was not checked. */
  schema_errors: {
    path: string;
    message: string;
  }[];
  channels: string[];
  endpoint_ids: string[] | null;
  deliver_at: Time | null;
  headers: Record<string, string>;
  duplicate_of: string | null;
  key_conflict_with: string | null;
  expunged_at: Time | null;
  expunged_by: string | null;
  /** How many of its deliveries are accepted but not in the queue yet: an event for thousands of endpoints is queued step by step. 0: all are queued. */
  unwritten_deliveries: number;
  /** What was published, byte for byte. */
  data: unknown;
}

export interface ExponentialRetry {
  /** Seconds before the first retry. */
  base: number;
  factor: number;
  max: number;
  attempts: number;
  jitter: 'full' | 'equal' | 'proportional' | 'none';
  max_age_seconds: number;
  permanent: (number | '1xx' | '2xx' | '3xx' | '4xx' | '5xx')[];
  transient: (number | '1xx' | '2xx' | '3xx' | '4xx' | '5xx')[];
}

export interface FilterCount {
  filter: Record<string, unknown> | null;
  /** Event types and patterns, as endpoints have them. Default: all types. */
  events?: string[];
  /** Selects only what belongs to this tenant. */
  tenant?: string;
}

export interface FilterCounted {
  /** How many events there were to examine, at most 100. */
  examined: number;
  /** How many of them the types and the filter select. */
  matching: number;
}

export interface FilterTried {
  matches: boolean;
  reason: string | null;
}

export interface FilterTry {
  filter: Record<string, unknown> | null;
  /** An event, as `POST /v1/events` accepts it. */
  event: Record<string, unknown>;
}

/** The current state, and figures of the last day. */
export interface Health {
  circuit: 'closed' | 'open' | 'half_open';
  opened_at: Time | null;
  next_probe_at: Time | null;
  consecutive_failures: number;
  /** Requests at the same time, as of now: `max_in_flight`, or fewer while it is slow. */
  in_flight_limit: number;
  /** The deadline as of now: `timeout_ms`, or less while it is slow and times out. */
  effective_timeout_ms: number;
  adaptive: {
    /** `slow`: half of its answers took at least half of `timeout_ms`. `timeouts`: and requests timed out, so the deadline is shorter. */
    reason: 'slow' | 'timeouts';
    since: Time;
  } | null;
  /** Waiting deliveries, counted up to `count_limit`. */
  waiting: number;
  /** Dead letters, counted in the same way. */
  dead: number;
  /** Counting stops here: an equal `waiting` or `dead` is that or more. 10,000; in a list at least 200, depending on the size of the page. */
  count_limit: number;
  /** Deliveries that were skipped since the endpoint was last disabled, including those that are no longer kept. A few seconds behind. */
  skipped_while_disabled: number;
  oldest_waiting_at: Time | null;
  success_rate: number | null;
  p50_ms: number | null;
  p95_ms: number | null;
  p99_ms: number | null;
  dead_letter_rate: number | null;
  /** How many were delivered at the first attempt, the second, and so on; the tenth and later ones together. */
  retry_distribution: number[];
}

export interface Inbox {
  /** Anyone who knows the token can send to the inbox. */
  token: string;
  /** The address of the inbox. */
  url: string;
  tenant: string;
  answer: {
    status: number;
    delay_ms: number;
    reset: boolean;
  };
  /** Number of requests that have arrived in total. */
  received: number;
  created_at: Time;
  expires_at: Time;
}

export interface InboxPage {
  data: Inbox[];
  next_cursor: string | null;
}

export interface InboxPatch {
  /** The status that requests get. */
  status?: number;
  /** Delay of the answer in milliseconds. */
  delay_ms?: number;
  /** True: the inbox cuts the connection instead of answering. */
  reset?: boolean;
  /** The answer as GET shows it, so that you can send it back. A field of the same name beside it takes precedence. */
  answer?: {
    /** The status that requests get. */
    status?: number;
    /** Delay of the answer in milliseconds. */
    delay_ms?: number;
    /** True: the inbox cuts the connection instead of answering. */
    reset?: boolean;
  };
  /** Read-only. May be sent with the value that it has. */
  token?: unknown;
  /** Read-only. May be sent with the value that it has. */
  url?: unknown;
  /** Read-only. May be sent with the value that it has. */
  tenant?: unknown;
  /** Read-only. May be sent with the value that it has. */
  created_at?: unknown;
  /** Read-only. Ignored if it is sent. */
  received?: unknown;
  /** Read-only. Ignored if it is sent. */
  expires_at?: unknown;
}

export interface InboxRequest {
  /** The number of the request. The first one is 1. */
  number: number;
  received_at: Time;
  method: string;
  path: string;
  /** Credentials are redacted. */
  headers: Record<string, string>;
  body: string;
  truncated: boolean;
  signature: {
    /** Whether the signature is valid. Posthorn checks it with the secrets of the endpoints that have this address. */
    verdict: 'valid' | 'invalid' | 'unknown';
    detail: string;
  };
  answered: {
    status: number;
    delay_ms: number;
    reset: boolean;
  };
}

export interface InboxRequestPage {
  data: InboxRequest[];
  next_cursor: string | null;
}

export interface Key {
  id: string;
  scope: 'admin' | 'tenant' | 'read';
  scopes: ('events:publish' | 'events:read' | 'deliveries:read' | 'deliveries:replay' | 'endpoints:read' | 'endpoints:write' | 'secrets:read' | 'catalogue:read' | 'catalogue:write')[] | null;
  tenant: string | null;
  description: string;
  /** The first characters of the key, to recognize it by. */
  prefix: string;
  created_at: Time;
  last_used_at: Time | null;
  rate_limit: {
    per_second: number;
    burst: number;
  } | null;
  expires_at: Time | null;
  allowed_ips: string[] | null;
}

export interface KeyPage {
  data: Key[];
  next_cursor: string | null;
}

export interface KeyPatch {
  description?: string;
  scopes?: ('events:publish' | 'events:read' | 'deliveries:read' | 'deliveries:replay' | 'endpoints:read' | 'endpoints:write' | 'secrets:read' | 'catalogue:read' | 'catalogue:write')[] | null;
  expires_at?: string | null;
  allowed_ips?: string[] | null;
  /** Read-only. May be sent with the value that it has. */
  id?: unknown;
  /** Read-only. May be sent with the value that it has. */
  scope?: unknown;
  /** Read-only. May be sent with the value that it has. */
  tenant?: unknown;
  /** Read-only. May be sent with the value that it has. */
  prefix?: unknown;
  /** Read-only. May be sent with the value that it has. */
  created_at?: unknown;
  /** Read-only. May be sent with the value that it has. */
  rate_limit?: unknown;
  /** Read-only. Ignored if it is sent. */
  last_used_at?: unknown;
}

export type Metrics = string;

export interface NewBatch {
  events: NewEvent[];
}

export interface NewEndpoint {
  /** The address that gets the requests: https, unless the operator allows http. */
  url: string;
  description?: string | null;
  metadata?: Record<string, unknown> | null;
  enabled?: boolean | null;
  paused?: boolean | null;
  events?: string[] | null;
  channels?: string[] | null;
  filter?: Record<string, unknown> | null;
  api_version?: string | null;
  payload?: 'full' | 'thin' | null;
  headers?: Record<string, string | null> | null;
  plain_headers?: string[] | null;
  auth?: {
    type: 'basic';
    username: string;
    password: string;
  } | {
    type: 'bearer';
    token: string;
  } | {
    type: 'oauth2';
    token_url: string;
    client_id: string;
    client_secret: string;
    scope?: string | null;
  } | null;
  tls?: {
    /** PEM: the certificate, then its chain. */
    cert: string;
    /** PEM: its private key. */
    key: string;
    ca?: string | null;
  } | null;
  signature?: 'standard' | 'standard-ed25519' | 'hex' | 'stripe' | 'github' | {
    profile: 'standard' | 'standard-ed25519' | 'hex' | 'stripe' | 'github';
    header?: string;
    prefix?: string;
  } | null;
  retry?: {
    preset?: 'default' | 'standard-webhooks' | 'minute' | 'fast' | 'patient' | 'day';
    /** Seconds before each attempt, the first included. */
    schedule?: number[];
    /** Seconds before the first retry. */
    base?: number;
    factor?: number;
    max?: number;
    attempts?: number;
    jitter?: 'full' | 'equal' | 'proportional' | 'none';
    max_age_seconds?: number;
    permanent?: (number | '1xx' | '2xx' | '3xx' | '4xx' | '5xx')[];
    transient?: (number | '1xx' | '2xx' | '3xx' | '4xx' | '5xx')[];
  } | null;
  breaker?: {
    consecutive?: number;
    failure_rate?: number;
    min_requests?: number;
    window_seconds?: number;
    cooldown_seconds?: number;
    max_cooldown_seconds?: number;
  } | null;
  timeout_ms?: number | null;
  max_in_flight?: number | null;
  adaptive?: 'on' | 'off' | null;
  rate_limit?: {
    per_second: number;
    burst?: number;
  } | null;
  region?: string | null;
  ordering?: 'none' | 'fifo' | null;
  fifo_on_dead?: 'skip' | 'block' | null;
  follow_redirects?: number | null;
  challenge?: 'echo' | 'cloudevents' | null;
  operator?: boolean | null;
  batch?: {
    /** A request carries at most this many events. */
    max_events?: number;
    /** A batch that is not full is sent when its oldest event has waited for this long. */
    max_wait_ms?: number;
    /** Maximum size of the body. A larger event goes alone. */
    max_bytes?: number;
    /** True: a batch that the receiver rejects (4xx) is sent again in halves, until the rejected event is alone. */
    split_rejected?: boolean;
  } | null;
  debounce?: {
    /** Path of the value that events have in common, such as `data.order_id`. Events without a value are sent as they are. */
    key: string;
    /** Posthorn sends one of the events with the same key that it accepts within this time. */
    window_ms: number;
    /** `last`: the last one, when no other has come for `window_ms`. `first`: the first one, at once. */
    mode?: 'last' | 'first';
    /** Mode `last`: a steady stream of events is held back for at most this long. Default: ten times `window_ms`. */
    max_wait_ms?: number;
  } | null;
  /** The tenant of the endpoint. Default: the tenant of the key, otherwise `default`. */
  tenant?: string;
  /** `whsec_` followed by 24 to 64 bytes in base64. Default: a random one. */
  secret?: string;
}

export interface NewEvent {
  /** Segments of letters, digits, `_` and `-`, separated by dots. `posthorn.` is reserved. */
  type: string;
  /** Any JSON value. It reaches the receivers byte for byte. */
  data: unknown;
  tenant?: string | null;
  idempotency_key?: string | null;
  schema_version?: string | null;
  channels?: string[] | null;
  endpoint_ids?: string[] | null;
  deliver_at?: Time | null;
  headers?: Record<string, string> | null;
}

export interface NewInbox {
  /** The status that requests get. */
  status?: number;
  /** Delay of the answer in milliseconds. */
  delay_ms?: number;
  /** True: the inbox cuts the connection instead of answering. */
  reset?: boolean;
  tenant?: string;
}

export interface NewKey {
  scope: 'admin' | 'tenant' | 'read';
  /** Required for a tenant key, optional for a read key, not allowed for an admin key. */
  tenant?: string;
  description?: string;
  rate_limit?: {
    per_second: number;
    /** How many at once after a quiet time. Default: one second’s worth. */
    burst?: number;
  } | null;
  scopes?: ('events:publish' | 'events:read' | 'deliveries:read' | 'deliveries:replay' | 'endpoints:read' | 'endpoints:write' | 'secrets:read' | 'catalogue:read' | 'catalogue:write')[] | null;
  expires_at?: string | null;
  allowed_ips?: string[] | null;
}

export interface NewNotifier {
  kind: 'slack' | 'email';
  tenant?: string;
  /** True: the notifier gets notices about all tenants. Only admin keys may set it. */
  operator?: boolean;
  /** With `slack`: the URL of a Slack-compatible webhook. */
  url?: string;
  /** With `email`: one e-mail address. */
  address?: string;
  /** Operational events, or prefixes such as `posthorn.circuit.*`. Default: all. */
  events?: string[];
  description?: string;
}

export interface NewPortalSession {
  /** The only tenant that the session can see. */
  tenant: string;
  /** What the session may do. Default: events:read, deliveries:read, deliveries:replay, endpoints:read, endpoints:write, catalogue:read. */
  capabilities?: ('events:publish' | 'events:read' | 'deliveries:read' | 'deliveries:replay' | 'endpoints:read' | 'endpoints:write' | 'secrets:read' | 'catalogue:read')[];
  /** How long the session lasts. */
  ttl_seconds?: number;
  /** For example who opens the portal. Shown in the audit log. */
  description?: string;
  /** How the pages look. It is a part of `url`. */
  appearance?: {
    theme?: 'light' | 'dark';
    /** The colour of buttons, links and charts. */
    accent?: string;
  };
}

export interface NotReady {
  status: 'not_ready';
  /** What is missing. */
  detail: string;
}

export interface Notifier {
  id: string;
  tenant: string;
  /** True: the notifier gets notices about all tenants. */
  operator: boolean;
  kind: 'slack' | 'email';
  url: string | null;
  address: string | null;
  /** The operational events that it reports. */
  events: string[];
  description: string;
  /** `unconfirmed`: the owner of the address has not opened the link yet, and gets nothing else. */
  status: 'active' | 'unconfirmed' | 'disabled';
  disabled_reason: 'manual' | 'gone' | 'failing' | 'dead_letters' | null;
  confirmed_at: Time | null;
  /** Finds its messages: `GET /v1/deliveries?endpoint_id=`. */
  endpoint_id: string;
  created_at: Time;
}

export interface NotifierPage {
  data: Notifier[];
  next_cursor: string | null;
}

export interface OAuth2 {
  type: 'oauth2';
  token_url: string;
  client_id: string;
  client_secret: '[redacted]';
  scope: string | null;
}

export type OpenApiDocument = Record<string, unknown>;

export interface Pin {
  endpoint_id: string;
  tenant: string;
  /** The version that the endpoint pins. */
  api_version: string;
  version: string | null;
  status: 'draft' | 'active' | 'deprecated' | 'retired' | null;
  sunset_at: Time | null;
}

export interface PinPage {
  data: Pin[];
  next_cursor: string | null;
}

export interface PortalSession {
  id: string;
  tenant: string;
  /** The only things that the session may do. */
  capabilities: ('events:publish' | 'events:read' | 'deliveries:read' | 'deliveries:replay' | 'endpoints:read' | 'endpoints:write' | 'secrets:read' | 'catalogue:read')[];
  description: string;
  /** The first characters of the token, to recognize it by. */
  prefix: string;
  created_at: Time;
  last_used_at: Time | null;
  expires_at: Time;
}

export interface PortalSessionPage {
  data: PortalSession[];
  next_cursor: string | null;
}

export interface PreviewedPayload {
  api_version: string | null;
  version: string | null;
  conversion: Conversion | null;
  /** What the endpoint would get as `data`. */
  data: unknown;
  error: {
    class: 'conversion_failed';
    message: string;
    hint: string;
  } | null;
}

/** The form of every error (RFC 9457). */
export interface Problem {
  /** A URN that names the code. */
  type: string;
  title: string;
  status: number;
  /** What is wrong, and what to do about it. */
  detail: string;
  /** Stable: base decisions on it. */
  code: 'malformed_json' | 'bad_request' | 'bad_cursor' | 'unauthorized' | 'forbidden' | 'not_found' | 'method_not_allowed' | 'request_timeout' | 'conflict' | 'endpoint_exists' | 'idempotency_conflict' | 'request_in_progress' | 'archived' | 'too_large' | 'unsupported_media_type' | 'invalid' | 'payload_invalid' | 'url_invalid' | 'url_forbidden' | 'challenge_failed' | 'rate_limited' | 'headers_too_large' | 'internal' | 'overloaded' | 'unavailable';
  errors: {
    /** The field, such as `retry.schedule[0]`. */
    path: string;
    message: string;
  }[];
  /** Finds the request in the log. */
  request_id?: string;
}

export interface Ready {
  status: 'ready';
  outbox: {
    /** Age of the oldest row in the outbox. 0: the outbox is empty. */
    oldest_age_seconds: number;
    /** Rows that could not become events, counted up to 1000. */
    rejected: number;
  } | null;
  relays: {
    /** Number of databases that relays read or have read. */
    sources: number;
    /** Age of the oldest event that no relay has stored yet. It grows while its relay is down. */
    oldest_age_seconds: number;
    /** Number of sources with a problem. The log of the relay says what it is. */
    troubled: number;
  } | null;
  regions_without_workers: string[] | null;
}

export interface RefusedEvent {
  error: Problem & {
    code: 'forbidden' | 'conflict' | 'idempotency_conflict' | 'too_large' | 'invalid' | 'payload_invalid' | 'rate_limited' | 'overloaded' | 'unavailable';
  };
}

export interface RejectedRecord {
  /** The id of the event that the record becomes when it is retried. */
  id: string;
  topic: string;
  partition: number;
  offset: number;
  tenant: string | null;
  /** Why it cannot become an event. */
  reason: string;
  recorded_at: Time;
  rejected_at: Time;
}

export interface RejectedRecordDetails {
  /** The id of the event that the record becomes when it is retried. */
  id: string;
  topic: string;
  partition: number;
  offset: number;
  tenant: string | null;
  /** Why it cannot become an event. */
  reason: string;
  recorded_at: Time;
  rejected_at: Time;
  key: string | null;
  value: string | null;
  headers: ({
    name: string;
    value: string | null;
  })[];
}

export interface RejectedRecordPage {
  data: RejectedRecord[];
  next_cursor: string | null;
}

export interface Replayed {
  /** Number of deliveries that are sent again, or would be. */
  deliveries: number;
  /** Number of deliveries that are not sent, because their endpoint is disabled or was deleted. */
  skipped: number;
  task_id: string | null;
}

export interface RequestEstimate {
  /** The estimate covers events accepted from this time on. */
  since: Time;
  until: Time;
  /** How many of these events the endpoint would have got. Without `batch` and `debounce` there is one request for each. */
  events: number;
  /** How many requests the endpoint would have got, if all of them had succeeded at once. */
  requests: number;
  /** How many events of the tenant were examined, at most 100,000. */
  examined: number;
  /** True: `since` is one hour before `until`. False: the hour has more events than one estimate examines. It covers only the newest ones, accepted since `since`. */
  is_complete: boolean;
}

export interface RequestEstimateRequest {
  /** The owner of the endpoint. Default: the tenant of the key, or `default`. */
  tenant?: string;
  events?: string[] | null;
  channels?: string[] | null;
  filter?: Record<string, unknown> | null;
  payload?: 'full' | 'thin' | null;
  batch?: {
    /** A request carries at most this many events. */
    max_events?: number;
    /** A batch that is not full is sent when its oldest event has waited for this long. */
    max_wait_ms?: number;
    /** Maximum size of the body. A larger event goes alone. */
    max_bytes?: number;
    /** True: a batch that the receiver rejects (4xx) is sent again in halves, until the rejected event is alone. */
    split_rejected?: boolean;
  } | null;
  debounce?: {
    /** Path of the value that events have in common, such as `data.order_id`. Events without a value are sent as they are. */
    key: string;
    /** Posthorn sends one of the events with the same key that it accepts within this time. */
    window_ms: number;
    /** `last`: the last one, when no other has come for `window_ms`. `first`: the first one, at once. */
    mode?: 'last' | 'first';
    /** Mode `last`: a steady stream of events is held back for at most this long. Default: ten times `window_ms`. */
    max_wait_ms?: number;
  } | null;
}

export interface RetriedRecords {
  /** How many are retried. At most 10,000 at a time: repeat while it is 10,000. */
  count: number;
}

export interface RetryRejected {
  /** Selects only records of this topic. */
  topic?: string;
}

export interface RotatedSecret {
  secret: string | null;
  /** The public key of an Ed25519 secret, which receivers verify with. */
  public_key?: string;
  previous_expires_at: Time | null;
  primary: 'old' | 'new';
  switch_at: Time | null;
}

export interface Rotation {
  overlap_seconds?: number | null;
  /** With `github` and `hex`, whose header has room for one signature: which secret signs it. The signature of the other one is in `<header>-next` or `<header>-previous`. */
  primary?: 'old' | 'new';
  switch_at?: string | null;
  /** The new secret. Default: a random one. */
  secret?: string;
}

export interface ScheduledRetry {
  /** Seconds before each attempt. */
  schedule: number[];
  jitter: 'full' | 'equal' | 'proportional' | 'none';
  max_age_seconds: number;
  permanent: (number | '1xx' | '2xx' | '3xx' | '4xx' | '5xx')[];
  transient: (number | '1xx' | '2xx' | '3xx' | '4xx' | '5xx')[];
}

export interface SchemaFailure {
  created_at: Time;
  tenant: string;
  event_type: string;
  version: string | null;
  result: 'flagged' | 'refused';
  event_id: string | null;
  /** The failing path, such as `data.lines[0].sku`. */
  path: string;
  message: string;
}

export interface SchemaFailurePage {
  data: SchemaFailure[];
  next_cursor: string | null;
}

export interface SentBatch {
  id: string;
  endpoint_id: string;
  created_at: Time;
  /** The deliveries that the request carried, in the order of its body. */
  deliveries: {
    id: string;
    event_id: string;
  }[];
}

export interface Sources {
  kafka: {
    /** POSTHORN_KAFKA_SOURCE_TOPICS */
    topics: string[];
    partitions: ({
      topic: string;
      partition: number;
      /** The offset of the next record to read. */
      position: number;
      log_end: number | null;
      /** Records that Posthorn has not read yet. Waiting and rejected records do not count. */
      lag: number;
      /** Records that were read and wait to be stored: their tenant is over its publish limit, or an operator retries them. Counted up to 10,000. */
      waiting: number;
      /** Records that cannot become events. Counted up to 10,000. */
      rejected: number;
      /** Records that Kafka deleted before Posthorn read them. */
      lost: number;
      owner: string | null;
      paused_reason: string | null;
      seen_at: Time | null;
    })[];
  };
}

export interface Stats {
  window: '1h' | '24h' | '7d' | null;
  from: Time;
  to: Time;
  /** How long one point of `series` is. */
  bucket_seconds: number;
  attempts: number;
  successes: number;
  failures: number;
  retried: number;
  delivered: number;
  dead: number;
  attempt_success_rate: number | null;
  final_success_rate: number | null;
  first_attempt_success_rate: number | null;
  dead_letter_rate: number | null;
  /** Deliveries per second. */
  throughput_per_second: number;
  /** How long receivers took to answer. Accurate to 9.1 %. */
  response_ms: {
    p50: number | null;
    p95: number | null;
    p99: number | null;
  };
  /** From acceptance to delivery. Accurate to 9.1 %. */
  delivery_ms: {
    p50: number | null;
    p95: number | null;
    p99: number | null;
  };
  /** How many were delivered at the first attempt, the second, and so on; the tenth and later ones together. */
  retry_distribution: number[];
  tenant: string | null;
  type: string | null;
  accepted: number;
  success_rate: number | null;
  now: {
    waiting: number;
    /** How many of the waiting deliveries belong to an endpoint whose circuit is open. `retrying` has only those that were tried. */
    waiting_for_circuit: number;
    fresh: number;
    retrying: number;
    oldest_waiting_seconds: number | null;
    dead: number;
    circuits_open: number;
    endpoints: number;
    endpoints_disabled: number;
    endpoints_paused: number;
    /** Counting stopped at 100,000: `waiting` or `dead` is that or more. */
    capped: boolean;
  };
  series: ({
    at: Time;
    accepted: number;
    attempts: number;
    successes: number;
    failures: number;
    delivered: number;
    dead: number;
    success_rate: number | null;
    response_p50_ms: number | null;
    response_p95_ms: number | null;
    response_p99_ms: number | null;
    delivery_p50_ms: number | null;
    delivery_p95_ms: number | null;
    delivery_p99_ms: number | null;
  })[];
  types: ({
    type: string;
    attempts: number;
    delivered: number;
    dead: number;
    success_rate: number | null;
  })[];
  endpoints: ({
    endpoint_id: string;
    url: string;
    description: string;
    tenant: string;
    enabled: boolean;
    paused: boolean;
    attempts: number;
    failures: number;
    success_rate: number | null;
    dead: number;
    circuit: 'closed' | 'open' | 'half_open';
  })[];
}

export interface Storage {
  kinds: {
    events: {
      /** The size on disk, with indexes. */
      bytes: number;
      /** PostgreSQL's estimate. */
      rows: number;
      oldest_at: Time | null;
      /** The age of the oldest, in days. */
      days_kept: number;
      retention_days: number | null;
    };
    deliveries: {
      /** The size on disk, with indexes. */
      bytes: number;
      /** PostgreSQL's estimate. */
      rows: number;
      oldest_at: Time | null;
      /** The age of the oldest, in days. */
      days_kept: number;
      retention_days: number | null;
    };
    attempts: {
      /** The size on disk, with indexes. */
      bytes: number;
      /** PostgreSQL's estimate. */
      rows: number;
      oldest_at: Time | null;
      /** The age of the oldest, in days. */
      days_kept: number;
      retention_days: number | null;
    };
    queue: {
      /** The size on disk, with indexes. */
      bytes: number;
      /** PostgreSQL's estimate. */
      rows: number;
      oldest_at: Time | null;
      /** The age of the oldest, in days. */
      days_kept: number;
      retention_days: number | null;
    };
    dead_letters: {
      /** The size on disk, with indexes. */
      bytes: number;
      /** PostgreSQL's estimate. */
      rows: number;
      oldest_at: Time | null;
      /** The age of the oldest, in days. */
      days_kept: number;
      retention_days: number | null;
    };
    converted_payloads: {
      /** The size on disk, with indexes. */
      bytes: number;
      /** PostgreSQL's estimate. */
      rows: number;
      oldest_at: Time | null;
      /** The age of the oldest, in days. */
      days_kept: number;
      retention_days: number | null;
    };
    batches: {
      /** The size on disk, with indexes. */
      bytes: number;
      /** PostgreSQL's estimate. */
      rows: number;
      oldest_at: Time | null;
      /** The age of the oldest, in days. */
      days_kept: number;
      retention_days: number | null;
    };
    debounce: {
      /** The size on disk, with indexes. */
      bytes: number;
      /** PostgreSQL's estimate. */
      rows: number;
      oldest_at: Time | null;
      /** The age of the oldest, in days. */
      days_kept: number;
      retention_days: number | null;
    };
    outbox: {
      /** The size on disk, with indexes. */
      bytes: number;
      /** PostgreSQL's estimate. */
      rows: number;
      oldest_at: Time | null;
      /** The age of the oldest, in days. */
      days_kept: number;
      retention_days: number | null;
    };
    idempotency: {
      /** The size on disk, with indexes. */
      bytes: number;
      /** PostgreSQL's estimate. */
      rows: number;
      oldest_at: Time | null;
      /** The age of the oldest, in days. */
      days_kept: number;
      retention_days: number | null;
    };
    inboxes: {
      /** The size on disk, with indexes. */
      bytes: number;
      /** PostgreSQL's estimate. */
      rows: number;
      oldest_at: Time | null;
      /** The age of the oldest, in days. */
      days_kept: number;
      retention_days: number | null;
    };
    audit: {
      /** The size on disk, with indexes. */
      bytes: number;
      /** PostgreSQL's estimate. */
      rows: number;
      oldest_at: Time | null;
      /** The age of the oldest, in days. */
      days_kept: number;
      retention_days: number | null;
    };
    statistics: {
      /** The size on disk, with indexes. */
      bytes: number;
      /** PostgreSQL's estimate. */
      rows: number;
      oldest_at: Time | null;
      /** The age of the oldest, in days. */
      days_kept: number;
      retention_days: number | null;
    };
    other: {
      /** The size on disk, with indexes. */
      bytes: number;
      /** PostgreSQL's estimate. */
      rows: number;
      oldest_at: Time | null;
      /** The age of the oldest, in days. */
      days_kept: number;
      retention_days: number | null;
    };
  };
  /** The whole database. */
  database_bytes: number;
  bytes_per_event: number | null;
  bytes_per_day: number | null;
  disk: {
    total_bytes: number;
    free_bytes: number;
  } | null;
  full_at: Time | null;
  /** How many dead letters retention discarded in the last 30 days. */
  dead_letters_expired: number;
  /** How long ago the oldest expired partition should have been dropped. 0: none is overdue. */
  overdue_seconds: number;
}

export type Stream = string;

export interface Task {
  id: string;
  kind: 'replay' | 'discard' | 'expunge' | 'archive' | 'restore';
  state: 'queued' | 'running' | 'done' | 'cancelled' | 'failed';
  /** How many deliveries it changes. An estimate from the newest 100,000 at first, exact when it has ended. */
  total: number;
  done: number;
  /** Deliveries that could not be changed, for instance because their endpoint is disabled. */
  failed: number;
  /** How many of the failed ones belong to an endpoint that is disabled or was deleted. */
  left_out: number;
  tenant: string | null;
  filter: {
    endpoint_id: string | null;
    event_id: string | null;
    status: ('pending' | 'retrying' | 'delivered' | 'dead' | 'discarded' | 'skipped')[];
    type: string | null;
    reason: 'exhausted' | 'rejected' | 'gone' | 'expired' | 'worker_crash' | null;
    since: Time | null;
    until: Time | null;
    ids: string[] | null;
  };
  why: string | null;
  error: string | null;
  /** Who created it: the id of a key, `user:` and the subject of a person, or `admin`. A tenant sees `operator` instead of the operator's keys and people. */
  created_by: string;
  created_at: Time;
  updated_at: Time;
  finished_at: Time | null;
}

export interface TaskPage {
  data: Task[];
  next_cursor: string | null;
}

export interface Tenant {
  id: string;
  name: string;
  description: string;
  metadata: Record<string, unknown>;
  ingest_rate_limit: {
    per_second: number;
    burst: number;
  } | null;
  max_endpoints: number | null;
  retention_days: number | null;
  validation: 'off' | 'warn' | 'strict';
  api_version: string | null;
  created_at: Time;
  updated_at: Time;
}

export interface TenantPage {
  data: Tenant[];
  next_cursor: string | null;
}

export interface TenantSettings {
  name?: string;
  description?: string;
  metadata?: Record<string, unknown>;
  ingest_rate_limit?: {
    per_second: number;
    /** How many at once after a quiet time. Default: one second’s worth. */
    burst?: number;
  } | null;
  max_endpoints?: number | null;
  retention_days?: number | null;
  /** How its payloads are checked against the catalogue. `warn`: invalid events are flagged. `strict`: they are refused, and so are unknown types. The `validation` of an event type outranks it. */
  validation?: 'off' | 'warn' | 'strict';
  api_version?: string | null;
  /** Read-only. May be sent with the value that it has. */
  id?: unknown;
  /** Read-only. May be sent with the value that it has. */
  created_at?: unknown;
  /** Read-only. Ignored if it is sent. */
  updated_at?: unknown;
}

export interface TestEvent {
  type?: string;
  data?: unknown;
}

export interface VersionDiff {
  verdict: 'additive' | 'breaking';
  changes: ({
    /** The path that has changed, such as `lines[].sku`. Empty: the payload itself. */
    path: string;
    kind: 'added' | 'removed' | 'renamed' | 'type_changed' | 'type_narrowed' | 'required' | 'optional' | 'enum_narrowed' | 'enum_widened' | 'tightened' | 'loosened' | 'undecided';
    breaking: boolean;
    message: string;
  })[];
  /** How to make the changes safely. */
  advice: string[];
}

export interface VersionPreview {
  event_id: string;
  event_type: string;
  current: PreviewedPayload;
  proposed: PreviewedPayload;
}

export interface VersionPreviewRequest {
  api_version: string | null;
  /** Default: the newest event that the endpoint subscribes to, if possible of a type whose version would change. */
  event_id?: string;
}

/** What happened, as a producer publishes it: accepted, stored, and sent to the endpoints that subscribe to it. */
export class Events extends Resource {
  /** Publish an event. A 202 means that the event is stored and will be delivered. With an idempotency key it can be sent again safely: the answer is the same, with `duplicate: true`. */
  publish(body: NewEvent, options?: RequestOptions): Promise<AcceptedEvent> {
    return this.call('POST', `/v1/events`, { body, keyed: true }, options);
  }

  /** List events. */
  list(query: { limit?: number; cursor?: string; tenant?: string; type?: string; since?: string; until?: string; idempotency_key?: string; has?: 'pending' | 'retrying' | 'delivered' | 'dead' | 'discarded' | 'skipped' | 'waiting' | 'none'; where?: string } = {}, options?: RequestOptions): PageRequest<Event> {
    return this.pages('GET', `/v1/events`, { query }, options);
  }

  /** Publish many events. Each event is accepted or refused on its own; the results are in the order of the events. */
  publishBatch(body: NewBatch, options?: RequestOptions): Promise<AcceptedBatch> {
    return this.call('POST', `/v1/events/batch`, { body, keyed: true }, options);
  }

  /** Show an event, with its data. */
  get(id: string, options?: RequestOptions): Promise<EventWithData> {
    return this.call('GET', `/v1/events/${encodeURIComponent(id)}`, {}, options);
  }

  /** List the deliveries of an event. */
  listDeliveries(id: string, query: { limit?: number; cursor?: string; status?: 'pending' | 'retrying' | 'delivered' | 'dead' | 'discarded' | 'skipped' } = {}, options?: RequestOptions): PageRequest<Delivery> {
    return this.pages('GET', `/v1/events/${encodeURIComponent(id)}/deliveries`, { query }, options);
  }

  /** List the attempts of all deliveries of an event. The list goes delivery by delivery, and the oldest attempt of each comes first. */
  listAttempts(id: string, query: { limit?: number; cursor?: string } = {}, options?: RequestOptions): PageRequest<Attempt> {
    return this.pages('GET', `/v1/events/${encodeURIComponent(id)}/attempts`, { query }, options);
  }

  /** Delete the payload of an event for good. Deletes `data` and the headers of the event, and the headers and bodies of all its attempts. If it was sent in a batch, the answers to that batch are deleted from the attempts of its other events too. Waiting deliveries end as `skipped`, dead ones as `discarded`, with reason `expunged`. The event and its history stay, with `expunged_at`. It cannot be undone. If the archive contains the event, the header `posthorn-archive-until` says until when. */
  expungePayload(id: string, options?: RequestOptions): Promise<void> {
    return this.call('DELETE', `/v1/events/${encodeURIComponent(id)}/payload`, {}, options);
  }

  /** Send an event again. Sends all deliveries of the event, or those that match. Deliveries to a disabled or deleted endpoint are skipped, but if you name such an endpoint, nothing is sent. If the event has more than 1,000 deliveries, the task `task_id` sends them in the background, and the counts are estimates. A dry run only counts: its answer is 200. */
  replay(id: string, body: EventReplay = {}, options?: RequestOptions): Promise<Replayed> {
    return this.call('POST', `/v1/events/${encodeURIComponent(id)}/replay`, { body, keyed: true }, options);
  }
}

/** Where a tenant wants its events sent, and how: retries, limits, signatures, order. */
export class Endpoints extends Resource {
  /** Create an endpoint. The answer contains its signing secret, or its public key with `standard-ed25519`. */
  create(body: NewEndpoint, options?: RequestOptions): Promise<CreatedEndpoint> {
    return this.call('POST', `/v1/endpoints`, { body, keyed: true }, options);
  }

  /** List endpoints. */
  list(query: { limit?: number; cursor?: string; tenant?: string; ids?: string; q?: string; event_type?: string } = {}, options?: RequestOptions): PageRequest<Endpoint> {
    return this.pages('GET', `/v1/endpoints`, { query }, options);
  }

  /** Show an endpoint. */
  get(id: string, options?: RequestOptions): Promise<Endpoint> {
    return this.call('GET', `/v1/endpoints/${encodeURIComponent(id)}`, {}, options);
  }

  /** Change an endpoint. A JSON merge patch: an absent field stays as it is, `null` restores the default (for `breaker`, `null` means no breaker and `{}` the default one). `metadata` and `headers` are merged, other objects are replaced as a whole. */
  update(id: string, body: EndpointPatch, options?: RequestOptions): Promise<ChangedEndpoint> {
    return this.call('PATCH', `/v1/endpoints/${encodeURIComponent(id)}`, { body }, options);
  }

  /** Delete an endpoint. Posthorn skips the waiting deliveries of the endpoint. Its history stays readable. */
  delete(id: string, options?: RequestOptions): Promise<void> {
    return this.call('DELETE', `/v1/endpoints/${encodeURIComponent(id)}`, {}, options);
  }

  /** Pause an endpoint. The deliveries to the endpoint wait until you resume it. */
  pause(id: string, options?: RequestOptions): Promise<Endpoint> {
    return this.call('POST', `/v1/endpoints/${encodeURIComponent(id)}/pause`, { keyed: true }, options);
  }

  /** Resume a paused endpoint. */
  resume(id: string, options?: RequestOptions): Promise<Endpoint> {
    return this.call('POST', `/v1/endpoints/${encodeURIComponent(id)}/resume`, { keyed: true }, options);
  }

  /** Give an endpoint a new signing secret. Both the old and the new secret sign for a while, so that receivers can switch. At most five secrets sign at once: a sixth is refused, unless `overlap_seconds` is 0. */
  rotateSecret(id: string, body: Rotation = {}, options?: RequestOptions): Promise<RotatedSecret> {
    return this.call('POST', `/v1/endpoints/${encodeURIComponent(id)}/rotate-secret`, { body, keyed: true }, options);
  }

  /** Revoke the old signing secrets now. */
  revokePreviousSecrets(id: string, options?: RequestOptions): Promise<void> {
    return this.call('DELETE', `/v1/endpoints/${encodeURIComponent(id)}/secrets/previous`, {}, options);
  }

  /** Show the signing secret. */
  getSecret(id: string, options?: RequestOptions): Promise<CurrentSecret> {
    return this.call('GET', `/v1/endpoints/${encodeURIComponent(id)}/secret`, {}, options);
  }

  /** Estimate the effect of `batch` or `debounce`. Counts the requests that an endpoint with these settings would have got for the events of the last hour. Changes and sends nothing. Events that name their endpoints are left out. */
  estimateRequests(body: RequestEstimateRequest = {}, options?: RequestOptions): Promise<RequestEstimate> {
    return this.call('POST', `/v1/shaping/estimate`, { body, reads: true }, options);
  }

  /** Statistics of an endpoint. */
  getStats(id: string, query: { window?: '1h' | '24h' | '7d'; since?: string; until?: string } = {}, options?: RequestOptions): Promise<EndpointStats> {
    return this.call('GET', `/v1/endpoints/${encodeURIComponent(id)}/stats`, { query }, options);
  }

  /** Send one request to an endpoint now. Sends the oldest waiting delivery once, even while the circuit is open. If nothing waits, sends a test event. The request waits for the rate limit and for `Retry-After`. A success closes the circuit. A failure leaves the cooldown as it was. */
  probe(id: string, options?: RequestOptions): Promise<Delivery> {
    return this.call('POST', `/v1/endpoints/${encodeURIComponent(id)}/probe`, { keyed: true }, options);
  }

  /** Show what a change of `api_version` would change. Converts a recent event to the version that the endpoint pins now and to the proposed one. Changes and sends nothing. */
  previewVersion(id: string, body: VersionPreviewRequest, options?: RequestOptions): Promise<VersionPreview> {
    return this.call('POST', `/v1/endpoints/${encodeURIComponent(id)}/preview`, { body, reads: true }, options);
  }

  /** Send a test event to an endpoint. The event goes to this endpoint only, whatever it subscribes to. It is sent even while the circuit is open, unless a probe is on its way or (FIFO) other deliveries wait before it. The request has the header `posthorn-test: true`. With `type` or `data`, a key with `scopes` also needs `events:publish`. */
  sendTestEvent(id: string, body: TestEvent = {}, options?: RequestOptions): Promise<Delivery> {
    return this.call('POST', `/v1/endpoints/${encodeURIComponent(id)}/test`, { body, keyed: true }, options);
  }

  /** List the deliveries to an endpoint. This also lists the deliveries to a deleted endpoint. */
  listDeliveries(id: string, query: { limit?: number; cursor?: string; tenant?: string; event_id?: string; type?: string; since?: string; until?: string; status?: 'pending' | 'retrying' | 'delivered' | 'dead' | 'discarded' | 'skipped' } = {}, options?: RequestOptions): PageRequest<Delivery> {
    return this.pages('GET', `/v1/endpoints/${encodeURIComponent(id)}/deliveries`, { query }, options);
  }

  /** Send again what an endpoint missed. A task sends them in the background. By default it sends deliveries that are dead or were skipped. */
  replay(id: string, body: EndpointReplay = {}, options?: RequestOptions): Promise<Count | Task> {
    return this.call('POST', `/v1/endpoints/${encodeURIComponent(id)}/replay`, { body, keyed: true }, options);
  }
}

/** A delivery is one event for one endpoint, with every attempt that was made. */
export class Deliveries extends Resource {
  /** List deliveries. */
  list(query: { limit?: number; cursor?: string; tenant?: string; event_id?: string; type?: string; since?: string; until?: string; status?: 'pending' | 'retrying' | 'delivered' | 'dead' | 'discarded' | 'skipped'; endpoint_id?: string } = {}, options?: RequestOptions): PageRequest<Delivery> {
    return this.pages('GET', `/v1/deliveries`, { query }, options);
  }

  /** Show a delivery. */
  get(id: string, options?: RequestOptions): Promise<Delivery> {
    return this.call('GET', `/v1/deliveries/${encodeURIComponent(id)}`, {}, options);
  }

  /** List the attempts of a delivery. The oldest attempt comes first. All of them are in one page. */
  listAttempts(id: string, options?: RequestOptions): PageRequest<Attempt> {
    return this.pages('GET', `/v1/deliveries/${encodeURIComponent(id)}/attempts`, {}, options);
  }

  /** Show the request that was sent. The answer has the body of the request, byte for byte, and its headers without credentials. `webhook-*`, `posthorn-*`, `user-agent` and the usual signature headers keep their names; every other header is named `posthorn-sent-<name>`. */
  getSentRequest(id: string, number: string, options?: RequestOptions): Promise<unknown> {
    return this.call('GET', `/v1/deliveries/${encodeURIComponent(id)}/attempts/${encodeURIComponent(number)}/request`, {}, options);
  }

  /** Show a batch. Shows the deliveries that a batch carried. Its composition never changes: a retry with other events has another id. Posthorn keeps batches as long as attempts. */
  getBatch(id: string, options?: RequestOptions): Promise<SentBatch> {
    return this.call('GET', `/v1/batches/${encodeURIComponent(id)}`, {}, options);
  }

  /** Send a delivery again. You can replay a delivery of any status. A waiting delivery becomes due now. */
  replay(id: string, options?: RequestOptions): Promise<Delivery> {
    return this.call('POST', `/v1/deliveries/${encodeURIComponent(id)}/replay`, { keyed: true }, options);
  }
}

/** Deliveries that failed and that Posthorn no longer retries. List them, send them again, or discard them. */
export class DeadLetters extends Resource {
  /** List dead letters. The list includes dead letters that are being replayed. */
  list(query: { limit?: number; cursor?: string; tenant?: string; endpoint_id?: string; event_id?: string; type?: string; since?: string; until?: string; status?: 'dead'; reason?: 'exhausted' | 'rejected' | 'gone' | 'expired' | 'worker_crash' } = {}, options?: RequestOptions): PageRequest<Delivery> {
    return this.pages('GET', `/v1/dead-letters`, { query }, options);
  }

  /** Send dead letters again. Runs in the background: the answer is a task. A dry run only counts. */
  replay(body: DeadLetterOrder, options?: RequestOptions): Promise<Count | Task> {
    return this.call('POST', `/v1/dead-letters/replay`, { body, keyed: true }, options);
  }

  /** Discard dead letters. Runs in the background: the answer is a task. A dry run only counts. */
  discard(body: DeadLetterOrder, options?: RequestOptions): Promise<Count | Task> {
    return this.call('POST', `/v1/dead-letters/discard`, { body, keyed: true }, options);
  }

  /** Discard a dead delivery. You can undo it for a limited time. */
  discardDelivery(id: string, body: Discard = {}, options?: RequestOptions): Promise<Delivery> {
    return this.call('POST', `/v1/deliveries/${encodeURIComponent(id)}/discard`, { body, keyed: true }, options);
  }

  /** Undo a discard. */
  restoreDelivery(id: string, options?: RequestOptions): Promise<Delivery> {
    return this.call('POST', `/v1/deliveries/${encodeURIComponent(id)}/restore`, { keyed: true }, options);
  }

  /** Count dead letters by endpoint and reason. Counts the newest 20,000. */
  listGroups(query: { tenant?: string; since?: string; until?: string } = {}, options?: RequestOptions): PageRequest<{
  endpoint_id: string;
  url: string | null;
  description: string | null;
  tenant: string;
  reason: 'exhausted' | 'rejected' | 'gone' | 'expired' | 'worker_crash';
  count: number;
  oldest_at: Time;
  newest_at: Time;
}> {
    return this.pages('GET', `/v1/dead-letters/groups`, { query }, options);
  }
}

/** Work in the background, such as replays and discards of many deliveries. */
export class Tasks extends Resource {
  /** List tasks. */
  list(query: { limit?: number; cursor?: string; tenant?: string; state?: 'queued' | 'running' | 'done' | 'cancelled' | 'failed'; since?: string; until?: string } = {}, options?: RequestOptions): PageRequest<Task> {
    return this.pages('GET', `/v1/tasks`, { query }, options);
  }

  /** Show a task and its progress. */
  get(id: string, options?: RequestOptions): Promise<Task> {
    return this.call('GET', `/v1/tasks/${encodeURIComponent(id)}`, {}, options);
  }

  /** Cancel a task. Deliveries that it has already changed stay changed. */
  cancel(id: string, options?: RequestOptions): Promise<Task> {
    return this.call('POST', `/v1/tasks/${encodeURIComponent(id)}/cancel`, { keyed: true }, options);
  }
}

/** Conditions on the content of events. */
export class Filters extends Resource {
  /** Try a filter on an event that is neither stored nor sent. */
  try(body: FilterTry, options?: RequestOptions): Promise<FilterTried> {
    return this.call('POST', `/v1/filters/try`, { body, reads: true }, options);
  }

  /** Count the last 100 events that a filter selects. */
  countMatches(body: FilterCount, options?: RequestOptions): Promise<FilterCounted> {
    return this.call('POST', `/v1/filters/count`, { body, reads: true }, options);
  }
}

/** The catalogue of event types, with their schemas and examples. */
export class EventTypes extends Resource {
  /** List the catalogue, newest first. */
  list(query: { limit?: number; cursor?: string } = {}, options?: RequestOptions): PageRequest<EventType> {
    return this.pages('GET', `/v1/event-types`, { query }, options);
  }

  /** Show an event type. */
  get(name: string, options?: RequestOptions): Promise<EventType> {
    return this.call('GET', `/v1/event-types/${encodeURIComponent(name)}`, {}, options);
  }

  /** Create or replace an event type. */
  put(name: string, body: EventTypeSettings, options?: RequestOptions): Promise<EventType> {
    return this.call('PUT', `/v1/event-types/${encodeURIComponent(name)}`, { body }, options);
  }

  /** Delete an event type from the catalogue. */
  delete(name: string, options?: RequestOptions): Promise<void> {
    return this.call('DELETE', `/v1/event-types/${encodeURIComponent(name)}`, {}, options);
  }

  /** List the versions of an event type, newest first. */
  listVersions(name: string, options?: RequestOptions): PageRequest<EventTypeVersion> {
    return this.pages('GET', `/v1/event-types/${encodeURIComponent(name)}/versions`, {}, options);
  }

  /** Get a version of an event type. */
  getVersion(name: string, version: string, options?: RequestOptions): Promise<EventTypeVersion> {
    return this.call('GET', `/v1/event-types/${encodeURIComponent(name)}/versions/${encodeURIComponent(version)}`, {}, options);
  }

  /** Create or replace a version of an event type. Creates the event type if the catalogue does not have it. */
  putVersion(name: string, version: string, body: EventTypeVersionSettings, options?: RequestOptions): Promise<EventTypeVersionStored> {
    return this.call('PUT', `/v1/event-types/${encodeURIComponent(name)}/versions/${encodeURIComponent(version)}`, { body }, options);
  }

  /** Compare the schemas of two versions, as a receiver of the first one sees it. `additive`: a receiver that was written against the first version can read every payload of the second. Fields that it does not know do not count. What cannot be decided is `breaking`. */
  diffVersions(name: string, version: string, other: string, options?: RequestOptions): Promise<VersionDiff> {
    return this.call('GET', `/v1/event-types/${encodeURIComponent(name)}/versions/${encodeURIComponent(version)}/diff/${encodeURIComponent(other)}`, {}, options);
  }

  /** Compare a version with the one before, without storing it. Takes the body of `PUT` and answers what `PUT` would: 422 for an invalid schema or example, otherwise the comparison, and why the change would be refused. */
  checkVersion(name: string, version: string, body: EventTypeVersionSettings = {}, options?: RequestOptions): Promise<EventTypeVersionChecked> {
    return this.call('POST', `/v1/event-types/${encodeURIComponent(name)}/versions/${encodeURIComponent(version)}/check`, { body, reads: true }, options);
  }

  /** List endpoints that pin a version of an event type. Lists endpoints with `api_version` that subscribe to the type, newest first. */
  listPins(name: string, query: { limit?: number; cursor?: string; tenant?: string; version?: string } = {}, options?: RequestOptions): PageRequest<Pin> {
    return this.pages('GET', `/v1/event-types/${encodeURIComponent(name)}/pins`, { query }, options);
  }

  /** List recent payloads that did not match the catalogue, newest first. The list is a sample: each process records up to 5 of a tenant and type in 5 seconds. They are kept for 7 days, up to 1,000 of a tenant and type. It also lists types that the catalogue does not have. */
  listSchemaFailures(name: string, query: { tenant?: string; since?: string; until?: string; limit?: number; cursor?: string } = {}, options?: RequestOptions): PageRequest<SchemaFailure> {
    return this.pages('GET', `/v1/event-types/${encodeURIComponent(name)}/failures`, { query }, options);
  }

  /** Check a payload that is neither stored nor sent. */
  try(name: string, body: EventTypeTry, options?: RequestOptions): Promise<EventTypeTried> {
    return this.call('POST', `/v1/event-types/${encodeURIComponent(name)}/try`, { body, reads: true }, options);
  }

  /** Get the catalogue as an OpenAPI document with webhooks, to give to customers. The latest version of a type has its plain name, other versions `type@version`. Drafts and retired versions are left out. */
  getCatalogueDocument(options?: RequestOptions): Promise<Record<string, unknown>> {
    return this.call('GET', `/v1/catalogue/openapi.json`, {}, options);
  }
}

/** Where events come from besides the API: Kafka topics, and their records that cannot become events. */
export class Sources extends Resource {
  /** Show how far Kafka topics are read. */
  get(options?: RequestOptions): Promise<Sources> {
    return this.call('GET', `/v1/sources`, {}, options);
  }

  /** List Kafka records that cannot become events. */
  listRejectedRecords(query: { topic?: string; limit?: number; cursor?: string } = {}, options?: RequestOptions): PageRequest<RejectedRecord> {
    return this.pages('GET', `/v1/sources/kafka/rejected`, { query }, options);
  }

  /** Retry all rejected Kafka records, or those of a topic. Use it for example after you changed the mapping. Posthorn starts with the oldest records. */
  retryRejectedRecords(body: RetryRejected = {}, options?: RequestOptions): Promise<RetriedRecords> {
    return this.call('POST', `/v1/sources/kafka/rejected/retry`, { body, keyed: true }, options);
  }

  /** Show a rejected Kafka record with its value. */
  getRejectedRecord(id: string, options?: RequestOptions): Promise<RejectedRecordDetails> {
    return this.call('GET', `/v1/sources/kafka/rejected/${encodeURIComponent(id)}`, {}, options);
  }

  /** Discard a rejected Kafka record. It is deleted and never becomes an event. */
  discardRejectedRecord(id: string, options?: RequestOptions): Promise<void> {
    return this.call('DELETE', `/v1/sources/kafka/rejected/${encodeURIComponent(id)}`, {}, options);
  }

  /** Retry a rejected Kafka record. The process that reads its partition maps it again. If it fails again, it is rejected again. */
  retryRejectedRecord(id: string, options?: RequestOptions): Promise<RejectedRecord> {
    return this.call('POST', `/v1/sources/kafka/rejected/${encodeURIComponent(id)}/retry`, { keyed: true }, options);
  }
}

/** The owners of endpoints and events. */
export class Tenants extends Resource {
  /** List tenants, newest first. */
  list(query: { limit?: number; cursor?: string } = {}, options?: RequestOptions): PageRequest<Tenant> {
    return this.pages('GET', `/v1/tenants`, { query }, options);
  }

  /** Show a tenant. */
  get(id: string, options?: RequestOptions): Promise<Tenant> {
    return this.call('GET', `/v1/tenants/${encodeURIComponent(id)}`, {}, options);
  }

  /** Create or replace a tenant. */
  put(id: string, body: TenantSettings, options?: RequestOptions): Promise<Tenant> {
    return this.call('PUT', `/v1/tenants/${encodeURIComponent(id)}`, { body }, options);
  }

  /** Delete a tenant that has no endpoints and no keys, or everything of a tenant. With `expunge=true` a task deletes every row of the tenant: events, deliveries, attempts, endpoints, keys, statistics, audit entries. Publishing for it is 409 until the task has ended. It cannot be undone. If the archive contains data of the tenant, the header `posthorn-archive-until` says until when. If Posthorn reads events from Kafka, `posthorn-kafka-until` says until when the topics may hold records of the tenant: a time, `unlimited`, or `unknown` if Kafka does not answer. */
  delete(id: string, query: { expunge?: boolean; confirm?: string; dry_run?: boolean } = {}, options?: RequestOptions): Promise<Count | Task | void> {
    return this.call('DELETE', `/v1/tenants/${encodeURIComponent(id)}`, { query }, options);
  }
}

/** Messages to people about endpoints that fail and deliveries that became dead letters. */
export class Notifiers extends Resource {
  /** Create a notifier. It posts notices about endpoints and deliveries to a chat, or sends them by e-mail. The e-mail address of a tenant gets a link first, and notices once its owner has confirmed. */
  create(body: NewNotifier, options?: RequestOptions): Promise<Notifier> {
    return this.call('POST', `/v1/notifiers`, { body, keyed: true }, options);
  }

  /** List notifiers. */
  list(query: { limit?: number; cursor?: string; tenant?: string } = {}, options?: RequestOptions): PageRequest<Notifier> {
    return this.pages('GET', `/v1/notifiers`, { query }, options);
  }

  /** Show a notifier. */
  get(id: string, options?: RequestOptions): Promise<Notifier> {
    return this.call('GET', `/v1/notifiers/${encodeURIComponent(id)}`, {}, options);
  }

  /** Delete a notifier. Posthorn skips messages that wait. The history of the notifier stays readable. */
  delete(id: string, options?: RequestOptions): Promise<void> {
    return this.call('DELETE', `/v1/notifiers/${encodeURIComponent(id)}`, {}, options);
  }

  /** Send a test message. Posthorn sends it at once, without waiting for other notices. */
  test(id: string, options?: RequestOptions): Promise<Delivery> {
    return this.call('POST', `/v1/notifiers/${encodeURIComponent(id)}/test`, { keyed: true }, options);
  }
}

/** Create, list and revoke API keys and portal sessions. */
export class Keys extends Resource {
  /** Create an API key. */
  create(body: NewKey, options?: RequestOptions): Promise<CreatedKey> {
    return this.call('POST', `/v1/keys`, { body, keyed: true }, options);
  }

  /** List API keys. */
  list(query: { limit?: number; cursor?: string; tenant?: string } = {}, options?: RequestOptions): PageRequest<Key> {
    return this.pages('GET', `/v1/keys`, { query }, options);
  }

  /** What the key of this request may do. */
  getCurrent(options?: RequestOptions): Promise<CurrentKey> {
    return this.call('GET', `/v1/keys/current`, {}, options);
  }

  /** Show an API key. */
  get(id: string, options?: RequestOptions): Promise<Key> {
    return this.call('GET', `/v1/keys/${encodeURIComponent(id)}`, {}, options);
  }

  /** Change what an API key may do. A JSON merge patch: an absent field stays as it is, `null` lifts the restriction. It applies at once, in every process. */
  update(id: string, body: KeyPatch, options?: RequestOptions): Promise<Key> {
    return this.call('PATCH', `/v1/keys/${encodeURIComponent(id)}`, { body }, options);
  }

  /** Revoke an API key. The key stops working at once, in every process. */
  revoke(id: string, options?: RequestOptions): Promise<void> {
    return this.call('DELETE', `/v1/keys/${encodeURIComponent(id)}`, {}, options);
  }

  /** Create a portal session. Gives the people of one tenant the console for a short time, without an API key. Create a session when a person opens the portal, and lead the browser to `url`. */
  createPortalSession(body: NewPortalSession, options?: RequestOptions): Promise<CreatedPortalSession> {
    return this.call('POST', `/v1/portal-sessions`, { body, keyed: true }, options);
  }

  /** List portal sessions. Lists the portal sessions that have not ended. */
  listPortalSessions(query: { limit?: number; cursor?: string; tenant?: string } = {}, options?: RequestOptions): PageRequest<PortalSession> {
    return this.pages('GET', `/v1/portal-sessions`, { query }, options);
  }

  /** End a portal session. Its token stops working at once, in every process. */
  endPortalSession(id: string, options?: RequestOptions): Promise<void> {
    return this.call('DELETE', `/v1/portal-sessions/${encodeURIComponent(id)}`, {}, options);
  }
}

/** Who changed what, and when. */
export class Audit extends Resource {
  /** Who changed what, newest first. */
  listEntries(query: { limit?: number; cursor?: string; tenant?: string; actor?: string; action?: 'endpoint.create' | 'endpoint.update' | 'endpoint.delete' | 'endpoint.disable' | 'endpoint.pause' | 'endpoint.resume' | 'endpoint.rotate_secret' | 'endpoint.revoke_previous_secrets' | 'endpoint.show_secret' | 'endpoint.test' | 'endpoint.probe' | 'endpoint.replay' | 'event.replay' | 'event.expunge' | 'delivery.replay' | 'delivery.discard' | 'delivery.restore' | 'dead_letter.replay' | 'dead_letter.discard' | 'task.cancel' | 'archive.restore' | 'kafka_record.retry' | 'kafka_record.discard' | 'tenant.create' | 'tenant.update' | 'tenant.delete' | 'tenant.expunge' | 'event_type.create' | 'event_type.update' | 'event_type.delete' | 'event_type.create_version' | 'event_type.update_version' | 'key.create' | 'key.update' | 'key.delete' | 'portal_session.create' | 'portal_session.delete' | 'notifier.create' | 'notifier.delete' | 'notifier.test' | 'notifier.confirm' | 'session.create' | 'session.delete'; object_id?: string; since?: string; until?: string } = {}, options?: RequestOptions): PageRequest<AuditEntry> {
    return this.pages('GET', `/v1/audit`, { query }, options);
  }
}

/** Figures over time, and the live tail. */
export class Statistics extends Resource {
  /** Statistics of everything, of a tenant or of an event type. */
  getStats(query: { window?: '1h' | '24h' | '7d'; since?: string; until?: string; tenant?: string; type?: string } = {}, options?: RequestOptions): Promise<Stats> {
    return this.call('GET', `/v1/stats`, { query }, options);
  }
}

/** Built-in temporary receivers, for tests. */
export class Inboxes extends Resource {
  /** Create a temporary receiver. */
  createInbox(body: NewInbox = {}, options?: RequestOptions): Promise<Inbox> {
    return this.call('POST', `/v1/inboxes`, { body, keyed: true }, options);
  }

  /** List inboxes. */
  list(query: { tenant?: string } = {}, options?: RequestOptions): PageRequest<Inbox> {
    return this.pages('GET', `/v1/inboxes`, { query }, options);
  }

  /** Show an inbox. */
  getInbox(token: string, options?: RequestOptions): Promise<Inbox> {
    return this.call('GET', `/v1/inboxes/${encodeURIComponent(token)}`, {}, options);
  }

  /** Set how an inbox answers. */
  updateInbox(token: string, body: InboxPatch, options?: RequestOptions): Promise<Inbox> {
    return this.call('PATCH', `/v1/inboxes/${encodeURIComponent(token)}`, { body }, options);
  }

  /** Delete an inbox and its requests. */
  deleteInbox(token: string, options?: RequestOptions): Promise<void> {
    return this.call('DELETE', `/v1/inboxes/${encodeURIComponent(token)}`, {}, options);
  }

  /** List the requests to an inbox, newest first. */
  listInboxRequests(token: string, query: { since?: string; until?: string } = {}, options?: RequestOptions): PageRequest<InboxRequest> {
    return this.pages('GET', `/v1/inboxes/${encodeURIComponent(token)}/requests`, { query }, options);
  }

  /** Delete the requests to an inbox. */
  clearInbox(token: string, options?: RequestOptions): Promise<void> {
    return this.call('DELETE', `/v1/inboxes/${encodeURIComponent(token)}/requests`, {}, options);
  }
}

/** Posthorn itself: its health, its metrics and its API. */
export class Service extends Resource {
  /** Is the process alive? */
  getHealth(options?: RequestOptions): Promise<Alive> {
    return this.call('GET', `/healthz`, {}, options);
  }

  /** Is the server ready for requests? Ready means that the database answers and accepts writes, that live workers own the shards and can read deliveries and record results, and, if this process delivers, that its lease is valid. `detail` says what is missing. */
  getReadiness(options?: RequestOptions): Promise<Ready> {
    return this.call('GET', `/readyz`, {}, options);
  }

  /** Metrics for Prometheus. The metrics of all processes of this node. Requests from the machine itself need no key; others need an admin key, or a read key without a tenant. `POSTHORN_METRICS_ACCESS` changes this, and `POSTHORN_METRICS_ADDR` moves it to another address. */
  getMetrics(options?: RequestOptions): Promise<string> {
    return this.call('GET', `/metrics`, {}, options);
  }

  /** How much is stored, how long it is kept, and when the disk is full. */
  getStorage(options?: RequestOptions): Promise<Storage> {
    return this.call('GET', `/v1/storage`, {}, options);
  }

  /** Bring a day or one event back from the archive. Posthorn restores the events with their deliveries and attempts, for `POSTHORN_RESTORE_DAYS` days. Expunged data is not restored. */
  restoreArchived(body: ArchiveRestore = {}, options?: RequestOptions): Promise<Task> {
    return this.call('POST', `/v1/archive/restore`, { body, keyed: true }, options);
  }

  /** This API as an OpenAPI 3.1 document. */
  getOpenApiDocument(options?: RequestOptions): Promise<OpenApiDocument> {
    return this.call('GET', `/openapi.json`, {}, options);
  }

  /** This API as a page to read. */
  getApiReference(options?: RequestOptions): Promise<string> {
    return this.call('GET', `/docs`, {}, options);
  }
}

/** The whole API. */
export class Resources {
  readonly events: Events;
  readonly endpoints: Endpoints;
  readonly deliveries: Deliveries;
  readonly deadLetters: DeadLetters;
  readonly tasks: Tasks;
  readonly filters: Filters;
  readonly eventTypes: EventTypes;
  readonly sources: Sources;
  readonly tenants: Tenants;
  readonly notifiers: Notifiers;
  readonly keys: Keys;
  readonly audit: Audit;
  readonly statistics: Statistics;
  readonly inboxes: Inboxes;
  readonly service: Service;

  constructor(transport: Transport) {
    this.events = new Events(transport);
    this.endpoints = new Endpoints(transport);
    this.deliveries = new Deliveries(transport);
    this.deadLetters = new DeadLetters(transport);
    this.tasks = new Tasks(transport);
    this.filters = new Filters(transport);
    this.eventTypes = new EventTypes(transport);
    this.sources = new Sources(transport);
    this.tenants = new Tenants(transport);
    this.notifiers = new Notifiers(transport);
    this.keys = new Keys(transport);
    this.audit = new Audit(transport);
    this.statistics = new Statistics(transport);
    this.inboxes = new Inboxes(transport);
    this.service = new Service(transport);
  }
}
