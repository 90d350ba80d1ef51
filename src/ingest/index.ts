export { Acceptor } from './accept.ts';
export { type AcceptObserverOptions, AcceptObservers } from './accept-observers.ts';
export { Admission } from './admission.ts';
export { BatchWriter, type CommitRouter } from './batch-writer.ts';
export { CommittedEvents } from './committed-events.ts';
export { expectJson, JsonDepthError, JsonSyntaxError } from './json-scan.ts';
export { KnownTenants } from './known-tenants.ts';
export type { Accepted } from './pending-event.ts';
export {
  type NewEvent,
  type ReadContext,
  type ReadLimits,
  readBatch,
  readEvent,
  readEventWithId,
  readTenant,
  readTestEvent,
  readTime,
} from './read-event.ts';
export { Subscriptions } from './subscriptions.ts';
export { TenantRates } from './tenant-rates.ts';
