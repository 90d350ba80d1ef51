/** Endpoints that lists name by id, without those that are loaded anyway (the newest). Each is fetched once, many in one request. */
import type { Endpoint, Page } from '@posthorn/client';
import { callApi, withQuery } from './client.ts';
import { createStore } from './store.ts';

type NamedEndpoint = Pick<Endpoint, 'url' | 'description'>;

/** By id. Null: there is no such endpoint, or the key may not see it. */
export const olderEndpoints = createStore<ReadonlyMap<string, NamedEndpoint | null>>(new Map());

const MAX_IDS = 100;
const COLLECT_MS = 20;
const wanted = new Set<string>();
let isScheduled = false;

/** Fetches the endpoint soon, together with others. Components call it while they render. */
export function requestEndpoint(id: string): void {
  if (olderEndpoints.get().has(id) || wanted.has(id)) return;
  wanted.add(id);
  schedule();
}

function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  setTimeout(() => void fetchWanted(), COLLECT_MS);
}

async function fetchWanted(): Promise<void> {
  const ids = [...wanted].slice(0, MAX_IDS);
  try {
    const path = withQuery('/v1/endpoints', { ids: ids.join(','), limit: MAX_IDS });
    const { data } = await callApi<Page<Endpoint>>('GET', path);
    const found = new Map(data.map((endpoint) => [endpoint.id, endpoint]));
    olderEndpoints.set(
      new Map([...olderEndpoints.get(), ...ids.map((id) => [id, found.get(id) ?? null] as const)]),
    );
  } catch {
    // The lists show the ids instead, and ask again when they render the next time.
  }
  for (const id of ids) wanted.delete(id);
  isScheduled = false;
  if (wanted.size > 0) schedule();
}

/** Call it after a change of endpoints, and when the session ends. */
export function forgetOlderEndpoints(): void {
  olderEndpoints.set(new Map());
}
