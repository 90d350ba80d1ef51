import type { Endpoint, Page } from '@posthorn/client';
import { withQuery } from '../api/client.ts';
import { olderEndpoints, requestEndpoint } from '../api/older-endpoints.ts';
import { useQuery } from '../api/query.ts';
import { useSession } from '../api/session.ts';
import { useStore } from '../api/store.ts';
import { shortenUrl } from './format.ts';

export interface EndpointName {
  readonly name: string;
  /** The URL, where the name is the description. */
  readonly detail: string | null;
}

/** An endpoint is named by its description; without one, by its URL. */
export function nameEndpoint({ url, description }: Pick<Endpoint, 'url' | 'description'>): EndpointName {
  const shortUrl = shortenUrl(url);
  return description === '' ? { name: shortUrl, detail: null } : { name: description, detail: shortUrl };
}

/**
 * Names endpoints for lists whose rows carry only an id and perhaps a URL. It reads the 250 newest endpoints, and older ones
 * when a row names them. A deleted endpoint is named by what the row carries.
 */
export function useEndpointNames(): (id: string, url?: string | null) => EndpointName {
  const { selectedTenant } = useSession();
  const { data } = useQuery<Page<Endpoint>>(
    withQuery('/v1/endpoints', { limit: 250, tenant: selectedTenant }),
  );
  const older = useStore(olderEndpoints);
  return (id, url = null) => {
    const endpoint = data?.data.find((each) => each.id === id) ?? older.get(id) ?? undefined;
    if (endpoint !== undefined) return nameEndpoint(endpoint);
    if (data !== undefined && data.next_cursor !== null && id.startsWith('ep_')) requestEndpoint(id);
    return { name: url === null ? id : shortenUrl(url), detail: null };
  };
}
