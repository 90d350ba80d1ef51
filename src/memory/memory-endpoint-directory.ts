import type { Endpoint } from '../domain/endpoint.ts';
import { EndpointIndex, type EndpointTotals } from '../domain/endpoint-index.ts';
import type { Uuid } from '../domain/ids.ts';
import { shareReads } from '../domain/share-reads.ts';
import type { EndpointDirectory } from '../ports/endpoint-directory.ts';
import type { MemoryStore } from './memory-store.ts';

/** The part of the store that a directory reads. It is separate, so that a faulty link can be put between the two. */
export interface EndpointSource {
  readChanges(sinceVersion: number): Promise<{ version: number; changed: readonly Endpoint[] }>;
}

export function createMemoryEndpointSource(store: MemoryStore): EndpointSource {
  return {
    async readChanges(sinceVersion) {
      const changed = [...store.endpoints.values()]
        .filter(({ version }) => version > sinceVersion)
        // A new reader needs a deleted endpoint only while deliveries of it wait.
        .filter(
          ({ endpoint }) => sinceVersion > 0 || !endpoint.deleted || store.queue.of(endpoint.id).length > 0,
        )
        .map(({ endpoint }) => endpoint);
      return { version: store.endpointVersion, changed };
    },
  };
}

export class MemoryEndpointDirectory implements EndpointDirectory {
  readonly #source: EndpointSource;
  readonly #endpoints = new EndpointIndex();
  readonly #listeners: ((changed: readonly Endpoint[]) => void)[] = [];
  #version = 0;
  #reads = 0;
  readonly refresh = shareReads(() => this.#read());

  constructor(source: EndpointSource) {
    this.#source = source;
  }

  get version(): number {
    return this.#version;
  }

  get reads(): number {
    return this.#reads;
  }

  get(id: Uuid): Endpoint | undefined {
    return this.#endpoints.get(id);
  }

  all(): Iterable<Endpoint> {
    return this.#endpoints.all();
  }

  ofShard(shard: number): Iterable<Endpoint> {
    return this.#endpoints.ofShard(shard);
  }

  operational(): Iterable<Endpoint> {
    return this.#endpoints.operational();
  }

  atInbox(token: string): Iterable<Endpoint> {
    return this.#endpoints.atInbox(token);
  }

  totalsOf(tenant: string | null): EndpointTotals {
    return this.#endpoints.totalsOf(tenant);
  }

  totalsOfShard(shard: number): EndpointTotals {
    return this.#endpoints.totalsOfShard(shard);
  }

  onChange(listener: (changed: readonly Endpoint[]) => void): void {
    this.#listeners.push(listener);
  }

  /** A store in memory is never restored. */
  onReplaced(): void {}

  forget(id: Uuid): void {
    this.#endpoints.delete(id);
  }

  async #read(): Promise<void> {
    const { version, changed } = await this.#source.readChanges(this.#version);
    this.#reads += 1;
    for (const endpoint of changed) this.#endpoints.set(endpoint);
    this.#version = version;
    if (changed.length > 0) for (const listener of this.#listeners) listener(changed);
  }
}
