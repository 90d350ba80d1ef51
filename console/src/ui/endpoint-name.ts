import type { Endpoint, Page } from '@posthorn/client';
import { withQuery } from '../api/client.ts';
import { useQuery } from '../api/query.ts';
import { useSession } from '../api/session.ts';
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
 * Names endpoints for lists whose rows carry only an id and perhaps a URL. It knows the 250 newest endpoints; older
 * ones are named by what the row carries.
 */
export function useEndpointNames(): (id: string, url?: string | null) => EndpointName {
  const { selectedTenant } = useSession();
  const { data } = useQuery<Page<Endpoint>>(
    withQuery('/v1/endpoints', { limit: 250, tenant: selectedTenant }),
  );
  return (id, url = null) => {
    const endpoint = data?.data.find((each) => each.id === id);
    if (endpoint !== undefined) return nameEndpoint(endpoint);
    return { name: url === null ? id : shortenUrl(url), detail: null };
  };
}
