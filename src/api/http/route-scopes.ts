/** Which scopes each route needs. A test compares this list with the routes. */
import { type AccessScope, hasScope, type Permissions } from '../../domain/access-scopes.ts';
import { Problem } from '../../domain/problem.ts';

/** `any`: every key may use it. `unnarrowed`: no scope covers it, so a key with `scopes` may not use it. */
export type NeededScopes = readonly AccessScope[] | 'any' | 'unnarrowed';

const NEEDED: Readonly<Record<string, NeededScopes>> = {
  createEndpoint: ['endpoints:write'],
  listEndpoints: ['endpoints:read'],
  getEndpoint: ['endpoints:read'],
  updateEndpoint: ['endpoints:write'],
  pauseEndpoint: ['endpoints:write'],
  resumeEndpoint: ['endpoints:write'],
  deleteEndpoint: ['endpoints:write'],
  // These show a new secret. A key that may write endpoints can choose their secrets anyway.
  rotateSecret: ['endpoints:write'],
  revokePreviousSecrets: ['endpoints:write'],
  getSecret: ['secrets:read'],
  getEndpointStats: ['endpoints:read'],
  sendTestEvent: ['endpoints:write'],
  probeEndpoint: ['endpoints:write'],
  createNotifier: ['endpoints:write'],
  listNotifiers: ['endpoints:read'],
  getNotifier: ['endpoints:read'],
  deleteNotifier: ['endpoints:write'],
  testNotifier: ['endpoints:write'],
  // It shows a payload.
  previewVersion: ['endpoints:read', 'events:read'],
  tryFilter: ['endpoints:read'],
  // It tells something about payloads.
  countFilterMatches: ['endpoints:read', 'events:read'],
  estimateRequests: ['endpoints:read', 'events:read'],

  publishEvent: ['events:publish'],
  publishBatch: ['events:publish'],
  listEvents: ['events:read'],
  getEvent: ['events:read'],

  listEventDeliveries: ['deliveries:read'],
  listEventAttempts: ['deliveries:read'],
  listDeliveries: ['deliveries:read'],
  getDelivery: ['deliveries:read'],
  listDeliveryAttempts: ['deliveries:read'],
  getBatch: ['deliveries:read'],
  listEndpointDeliveries: ['deliveries:read'],
  listDeadLetters: ['deliveries:read'],
  listDeadLetterGroups: ['deliveries:read'],
  getStats: ['deliveries:read'],
  getMetrics: ['deliveries:read'],
  listTasks: ['deliveries:read'],
  getTask: ['deliveries:read'],
  // They show payloads.
  getSentRequest: ['deliveries:read', 'events:read'],
  streamEvents: ['deliveries:read', 'events:read'],

  replayDelivery: ['deliveries:replay'],
  replayEvent: ['deliveries:replay'],
  replayEndpoint: ['deliveries:replay'],
  replayDeadLetters: ['deliveries:replay'],
  discardDeadLetters: ['deliveries:replay'],
  discardDelivery: ['deliveries:replay'],
  restoreDelivery: ['deliveries:replay'],
  cancelTask: ['deliveries:replay'],

  listEventTypes: ['catalogue:read'],
  getEventType: ['catalogue:read'],
  putEventType: ['catalogue:write'],
  deleteEventType: ['catalogue:write'],
  listEventTypeVersions: ['catalogue:read'],
  getEventTypeVersion: ['catalogue:read'],
  putEventTypeVersion: ['catalogue:write'],
  checkEventTypeVersion: ['catalogue:read'],
  listPins: ['catalogue:read', 'endpoints:read'],
  diffEventTypeVersions: ['catalogue:read'],
  getCatalogueDocument: ['catalogue:read'],
  tryEventType: ['catalogue:read'],
  // It tells something about payloads.
  listSchemaFailures: ['catalogue:read', 'events:read'],

  getCurrentKey: 'any',
  createKey: 'unnarrowed',
  listKeys: 'unnarrowed',
  getKey: 'unnarrowed',
  updateKey: 'unnarrowed',
  revokeKey: 'unnarrowed',
  createPortalSession: 'unnarrowed',
  listPortalSessions: 'unnarrowed',
  endPortalSession: 'unnarrowed',
  listTenants: 'unnarrowed',
  getTenant: 'unnarrowed',
  putTenant: 'unnarrowed',
  deleteTenant: 'unnarrowed',
  listAuditEntries: 'unnarrowed',
  createInbox: 'unnarrowed',
  listInboxes: 'unnarrowed',
  getInbox: 'unnarrowed',
  updateInbox: 'unnarrowed',
  deleteInbox: 'unnarrowed',
  expungeEventPayload: 'unnarrowed',
  getStorage: 'unnarrowed',
  restoreArchived: 'unnarrowed',
  getSources: 'unnarrowed',
  listRejectedRecords: 'unnarrowed',
  getRejectedRecord: 'unnarrowed',
  retryRejectedRecord: 'unnarrowed',
  retryRejectedRecords: 'unnarrowed',
  discardRejectedRecord: 'unnarrowed',
  listInboxRequests: 'unnarrowed',
  clearInbox: 'unnarrowed',
};

export const routesWithScopes: ReadonlySet<string> = new Set(Object.keys(NEEDED));

/** What a route needs. A route that is not in the list is closed to keys with `scopes`. */
export const scopesNeededBy = (operationId: string | undefined): NeededScopes =>
  NEEDED[operationId ?? ''] ?? 'unnarrowed';

/** Throws `forbidden` if `scopes` of the caller lacks what the route needs. `scope` is checked separately. */
export function checkScopes(caller: Permissions, needed: NeededScopes): void {
  if (caller.scopes === null || needed === 'any') return;
  const has = `This key has only ${caller.scopes.join(', ')}.`;
  if (needed === 'unnarrowed')
    throw new Problem('forbidden', `This needs a key without \`scopes\`: no scope covers it. ${has}`);
  const missing = needed.filter((scope) => !hasScope(caller, scope));
  if (missing.length > 0)
    throw new Problem('forbidden', `This needs the scope ${missing.join(' and ')}. ${has}`);
}
