/** Endpoints and events for tests of the deliver stage, and an attempt as a promise. */
import type { Deliverer, OutgoingRequest } from '../../src/deliver/index.ts';
import type { Endpoint } from '../../src/domain/endpoint.ts';
import type { EventContent } from '../../src/domain/event.ts';
import type { AttemptOutcome } from '../../src/domain/outcome.ts';

export const TEST_SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

export function anEndpoint(url: string, overrides: Partial<Endpoint> = {}): Endpoint {
  return {
    id: '01890a5d-ac96-774b-bcce-b302099a8057',
    tenant: 'acme',
    url,
    events: ['*'],
    channels: [],
    operator: false,
    filter: null,
    enabled: true,
    disabledReason: null,
    paused: false,
    deleted: false,
    apiVersion: null,
    payload: 'full',
    headers: {},
    plainHeaders: [],
    auth: null,
    certificate: null,
    signature: 'standard',
    retry: {
      kind: 'schedule',
      schedule: [0],
      jitter: 'none',
      maxAgeSeconds: 60,
      permanent: [],
      transient: [],
    },
    breaker: null,
    timeoutMs: 2000,
    maxInFlight: 10,
    isAdaptive: true,
    rateLimit: null,
    region: null,
    shard: null,
    wantedShard: null,
    placement: 0,
    batch: null,
    debounce: null,
    ordering: 'none',
    fifoOnDead: 'skip',
    followRedirects: 0,
    notifier: null,
    secrets: [{ secret: TEST_SECRET, expiresAt: null }],
    ...overrides,
  };
}

export function anEvent(overrides: Partial<EventContent> = {}): EventContent {
  return {
    id: '01890a5d-ac96-774b-bcce-b30209990000',
    tenant: 'acme',
    type: 'order.created',
    data: Buffer.from('{"order":1}'),
    idempotencyKey: null,
    schemaVersion: null,
    headers: null,
    ...overrides,
  };
}

export function attempt(
  deliverer: Deliverer,
  endpoint: Endpoint,
  overrides: Partial<OutgoingRequest> = {},
): Promise<AttemptOutcome> {
  return new Promise((resolve) => {
    deliverer.send(
      {
        endpoint,
        event: anEvent(),
        deliveryId: '01890a5d-ac96-774b-bcce-b30209990001',
        number: 1,
        retryReason: null,
        ...overrides,
      },
      resolve,
    );
  });
}
