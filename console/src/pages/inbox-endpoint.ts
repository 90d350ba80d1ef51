import type { CreatedEndpoint, Inbox } from '@posthorn/client';
import { callApi } from '../api/client.ts';
import { invalidate } from '../api/query.ts';

/** Retries and a circuit breaker with short pauses, so that the user can watch them. */
const QUICK_RETRY_SETTINGS = {
  retry: { schedule: [0, 2, 3, 4], jitter: 'none' },
  breaker: { consecutive: 3, cooldown_seconds: 4, max_cooldown_seconds: 4 },
};

interface InboxEndpointOptions {
  readonly description: string;
  /** The event types to subscribe to. Without them: every event of the tenant. */
  readonly events?: readonly string[];
}

/** Creates an endpoint that sends events of the inbox's tenant to the inbox. */
export async function createInboxEndpoint(
  inbox: Inbox,
  options: InboxEndpointOptions,
): Promise<CreatedEndpoint> {
  const endpoint = await callApi<CreatedEndpoint>('POST', '/v1/endpoints', {
    url: inbox.url,
    tenant: inbox.tenant,
    ...options,
    ...QUICK_RETRY_SETTINGS,
  });
  invalidate('/v1/endpoints');
  return endpoint;
}
