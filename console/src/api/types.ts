/** What the API answers, as far as the console reads it. */
export type Scope = 'admin' | 'tenant' | 'read';

export interface CurrentKey {
  readonly id: string | null;
  readonly scope: Scope;
  readonly tenant: string | null;
  readonly prefix: string;
  readonly capabilities?: { readonly inbox?: boolean };
}

export interface Page<T> {
  readonly data: T[];
  readonly next_cursor: string | null;
}

export type Circuit = 'closed' | 'open' | 'half_open';

export interface Health {
  readonly circuit: Circuit;
  readonly opened_at: string | null;
  readonly next_probe_at: string | null;
  readonly consecutive_failures: number;
  readonly waiting: number;
  readonly dead: number;
  readonly oldest_waiting_at: string | null;
  readonly success_rate: number | null;
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
  readonly p99_ms: number | null;
}

export interface Retry {
  readonly preset?: string;
  readonly schedule?: number[];
  readonly base?: number;
  readonly factor?: number;
  readonly max?: number;
  readonly attempts?: number;
  readonly jitter?: string;
  readonly max_age_seconds?: number;
  readonly permanent?: (number | string)[];
  readonly transient?: (number | string)[];
}

export interface Breaker {
  readonly consecutive: number;
  readonly failure_rate: number;
  readonly min_requests: number;
  readonly window_seconds: number;
  readonly cooldown_seconds: number;
  readonly max_cooldown_seconds: number;
}

export interface Endpoint {
  readonly id: string;
  readonly tenant: string;
  readonly url: string;
  readonly description: string;
  readonly events: string[];
  readonly channels: string[];
  readonly filter: unknown;
  readonly enabled: boolean;
  readonly disabled_reason: string | null;
  readonly paused: boolean;
  readonly api_version: string | null;
  readonly payload: 'full' | 'thin';
  readonly headers: Record<string, string>;
  readonly auth: Record<string, unknown> | null;
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca: string | null } | null;
  readonly challenge?: string | null;
  readonly signature: string | { profile: string; header?: string; prefix?: string };
  readonly retry: Retry;
  readonly breaker: Breaker | null;
  readonly timeout_ms: number;
  readonly max_in_flight: number;
  readonly rate_limit: { per_second: number; burst: number } | null;
  readonly ordering: 'none' | 'fifo';
  readonly fifo_on_dead: 'skip' | 'block';
  readonly follow_redirects: number;
  readonly batch: Record<string, unknown> | null;
  readonly debounce: Record<string, unknown> | null;
  readonly metadata: Record<string, unknown>;
  readonly secret?: string;
  readonly health: Health;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface EventSummary {
  readonly id: string;
  readonly type: string;
  readonly tenant: string;
  readonly created_at: string;
  readonly deliveries: number;
  readonly idempotency_key: string | null;
  readonly schema_version: string | null;
  readonly channels: string[];
  readonly endpoint_ids: string[] | null;
  readonly deliver_at: string | null;
  readonly headers: Record<string, string>;
}

export interface EventDetail extends EventSummary {
  readonly data: unknown;
}

export type DeliveryStatus = 'pending' | 'retrying' | 'delivered' | 'dead' | 'discarded' | 'skipped';

export interface Delivery {
  readonly id: string;
  readonly event_id: string;
  readonly endpoint_id: string;
  readonly tenant: string;
  readonly event_type: string;
  readonly status: DeliveryStatus;
  readonly attempts: number;
  readonly max_attempts: number | null;
  readonly next_attempt_at: string | null;
  readonly last_status_code: number | null;
  readonly last_error: string | null;
  readonly waiting_reason: string | null;
  readonly reason: string | null;
  readonly replaying: boolean;
  readonly replays: number;
  readonly created_at: string;
  readonly delivered_at: string | null;
  readonly dead_at: string | null;
}

export interface Attempt {
  readonly delivery_id: string;
  readonly number: number;
  readonly started_at: string;
  readonly duration_ms: number;
  readonly timing: {
    readonly dns_ms: number | null;
    readonly connect_ms: number | null;
    readonly tls_ms: number | null;
    readonly first_byte_ms: number | null;
  };
  readonly status_code: number | null;
  readonly outcome: 'delivered' | 'retry' | 'dead' | 'superseded';
  readonly error: { readonly class: string; readonly message: string; readonly hint: string | null } | null;
  readonly url: string;
  readonly request_headers: Record<string, string>;
  readonly response_headers: Record<string, string> | null;
  readonly response_body: string | null;
  readonly response_truncated: boolean;
  readonly trigger: 'auto' | 'replay' | 'test';
}

export interface Task {
  readonly id: string;
  readonly kind: 'replay' | 'discard';
  readonly state: 'queued' | 'running' | 'done' | 'cancelled' | 'failed';
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  readonly error: string | null;
  readonly created_at: string;
  readonly finished_at: string | null;
}

export interface Percentiles {
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

export interface StatsPoint {
  readonly at: string;
  readonly accepted?: number | null;
  readonly attempts: number;
  readonly successes: number;
  readonly failures: number;
  readonly delivered: number;
  readonly dead: number;
  readonly success_rate: number | null;
  readonly response_p50_ms: number | null;
  readonly response_p95_ms: number | null;
  readonly response_p99_ms: number | null;
  readonly delivery_p50_ms: number | null;
  readonly delivery_p95_ms: number | null;
  readonly delivery_p99_ms: number | null;
}

export interface Stats {
  readonly window: string;
  readonly bucket_seconds: number;
  readonly to: string;
  readonly accepted?: number | null;
  readonly attempts: number;
  readonly successes: number;
  readonly failures: number;
  readonly delivered: number;
  readonly dead: number;
  readonly success_rate: number | null;
  readonly first_attempt_success_rate: number | null;
  readonly dead_letter_rate: number | null;
  readonly throughput_per_second: number;
  readonly response_ms: Percentiles;
  readonly delivery_ms: Percentiles;
  readonly series: StatsPoint[];
}

export interface OverviewStats extends Stats {
  readonly now: {
    readonly waiting: number;
    readonly fresh: number;
    readonly retrying: number;
    readonly oldest_waiting_seconds: number | null;
    readonly dead: number;
    readonly circuits_open: number;
    readonly endpoints: number;
    readonly endpoints_disabled: number;
    readonly endpoints_paused: number;
  };
  readonly types: {
    type: string;
    attempts: number;
    delivered: number;
    dead: number;
    success_rate: number | null;
  }[];
  readonly endpoints: {
    endpoint_id: string;
    url: string;
    tenant: string;
    attempts: number;
    failures: number;
    success_rate: number | null;
    dead: number;
    circuit: Circuit;
  }[];
}

export interface DeadLetterGroup {
  readonly endpoint_id: string;
  readonly url: string | null;
  readonly tenant: string;
  readonly reason: string;
  readonly count: number;
  readonly oldest_at: string;
  readonly newest_at: string;
}

export interface ApiKey {
  readonly id: string;
  readonly scope: Scope;
  readonly tenant: string | null;
  readonly description: string;
  readonly prefix: string;
  readonly created_at: string;
  readonly last_used_at: string | null;
  readonly key?: string;
}

export interface EventType {
  readonly name: string;
  readonly description: string | null;
  readonly schema: unknown;
  readonly example: unknown;
  readonly deprecated: boolean;
  readonly archived?: boolean;
  readonly created_at?: string;
  readonly updated_at?: string;
}

export interface AuditEntry {
  readonly id: string;
  readonly created_at: string;
  readonly action: string;
  readonly tenant: string | null;
  readonly actor: { readonly id: string; readonly prefix: string | null; readonly scope: string };
  readonly object: { readonly type: string; readonly id: string | null };
  readonly changes: readonly {
    readonly field: string;
    readonly before?: unknown;
    readonly after?: unknown;
  }[];
  readonly address: string;
}

export interface InboxAnswer {
  readonly status: number;
  readonly delay_ms: number;
  readonly reset: boolean;
}

export interface Inbox {
  readonly token: string;
  readonly url: string;
  readonly tenant: string;
  readonly answer: InboxAnswer;
  readonly received: number;
  readonly created_at: string;
  readonly expires_at: string;
}

export interface InboxRequest {
  readonly number: number;
  readonly received_at: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly truncated: boolean;
  readonly signature: { readonly verdict: 'valid' | 'invalid' | 'unknown'; readonly detail: string };
  readonly answered: InboxAnswer;
}

/** `GET /readyz`. Null: the figures could not be had in time. */
export interface Readiness {
  readonly outbox?: { readonly oldest_age_seconds: number; readonly rejected: number } | null;
  readonly relays?: {
    readonly sources: number;
    readonly oldest_age_seconds: number;
    readonly troubled: number;
  } | null;
}
