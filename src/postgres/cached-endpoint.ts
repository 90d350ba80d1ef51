/**
 * An endpoint as the cache holds it. Endpoints with the same configuration share one object of settings. With a million
 * endpoints, a copy of each default would take 200 MB.
 *
 * Do not copy one with `{ ...endpoint }`: its settings would be missing. Use `asDeleted`, or `resolveEndpoint`.
 */
import type { DisabledReason, Endpoint, EndpointSecret } from '../domain/endpoint.ts';
import type { EndpointRecord, EndpointSettings } from '../domain/endpoint-config.ts';
import type { Uuid } from '../domain/ids.ts';

export class CachedEndpoint implements Endpoint {
  readonly id: Uuid;
  readonly tenant: string;
  readonly url: string;
  readonly enabled: boolean;
  readonly disabledReason: DisabledReason | null;
  readonly paused: boolean;
  readonly deleted: boolean;
  readonly shard: number | null;
  readonly wantedShard: number | null;
  readonly placement: number;
  readonly secrets: readonly EndpointSecret[];
  readonly #settings: EndpointSettings;

  constructor(
    record: Omit<EndpointRecord, 'config'>,
    settings: EndpointSettings,
    secrets: readonly EndpointSecret[],
  ) {
    this.id = record.id;
    this.tenant = record.tenant;
    this.url = record.url;
    this.enabled = record.enabled;
    this.disabledReason = record.disabledReason;
    this.paused = record.paused;
    this.deleted = record.deleted;
    this.shard = record.shard ?? null;
    this.wantedShard = record.wantedShard ?? null;
    this.placement = record.placement ?? 0;
    this.secrets = secrets;
    this.#settings = settings;
  }

  /** Returns the endpoint as it is after its deletion. */
  asDeleted(): CachedEndpoint {
    return new CachedEndpoint({ ...this, deleted: true }, this.#settings, this.secrets);
  }

  get events(): Endpoint['events'] {
    return this.#settings.events;
  }
  get channels(): Endpoint['channels'] {
    return this.#settings.channels;
  }
  get operator(): Endpoint['operator'] {
    return this.#settings.operator;
  }
  get filter(): Endpoint['filter'] {
    return this.#settings.filter;
  }
  get apiVersion(): Endpoint['apiVersion'] {
    return this.#settings.apiVersion;
  }
  get payload(): Endpoint['payload'] {
    return this.#settings.payload;
  }
  get headers(): Endpoint['headers'] {
    return this.#settings.headers;
  }
  get plainHeaders(): Endpoint['plainHeaders'] {
    return this.#settings.plainHeaders;
  }
  get auth(): Endpoint['auth'] {
    return this.#settings.auth;
  }
  get certificate(): Endpoint['certificate'] {
    return this.#settings.certificate;
  }
  get signature(): Endpoint['signature'] {
    return this.#settings.signature;
  }
  get retry(): Endpoint['retry'] {
    return this.#settings.retry;
  }
  get breaker(): Endpoint['breaker'] {
    return this.#settings.breaker;
  }
  get timeoutMs(): Endpoint['timeoutMs'] {
    return this.#settings.timeoutMs;
  }
  get maxInFlight(): Endpoint['maxInFlight'] {
    return this.#settings.maxInFlight;
  }
  get isAdaptive(): Endpoint['isAdaptive'] {
    return this.#settings.isAdaptive;
  }
  get rateLimit(): Endpoint['rateLimit'] {
    return this.#settings.rateLimit;
  }
  get region(): Endpoint['region'] {
    return this.#settings.region;
  }
  get ordering(): Endpoint['ordering'] {
    return this.#settings.ordering;
  }
  get fifoOnDead(): Endpoint['fifoOnDead'] {
    return this.#settings.fifoOnDead;
  }
  get followRedirects(): Endpoint['followRedirects'] {
    return this.#settings.followRedirects;
  }
  get batch(): Endpoint['batch'] {
    return this.#settings.batch;
  }
  get debounce(): Endpoint['debounce'] {
    return this.#settings.debounce;
  }
  get notifier(): Endpoint['notifier'] {
    return this.#settings.notifier;
  }
}
