export type { NewEvent } from '../domain/event.ts';
export { Acceptor } from './accept.ts';
export { type AcceptObserverOptions, AcceptObservers } from './accept-observers.ts';
export { Admission } from './admission.ts';
export { BatchWriter } from './batch-writer.ts';
export { BACKGROUND_FACTOR, CommitPace } from './commit-pace.ts';
export { CommittedEvents } from './committed-events.ts';
export { readTenant, readTime } from './event-fields.ts';
export { sliceRowsOf } from './event-record.ts';
export { FanOutLimit } from './fan-out-limit.ts';
export { FanOutWriter } from './fan-out-writer.ts';
export { expectJson, JsonDepthError, JsonSyntaxError } from './json-scan.ts';
export { KnownTenants } from './known-tenants.ts';
export { LoadShedder } from './load-shedder.ts';
export { LogQueue } from './log-queue.ts';
export type { AcceptAnswer } from './pending-event.ts';
export { readBatch } from './read-batch.ts';
export {
  ENVELOPE_BYTES,
  type ReadContext,
  type ReadLimits,
  readEvent,
  readEventWithId,
  readTestEvent,
} from './read-event.ts';
export { readEventFromParts, readJsonFields } from './read-record.ts';
export { SchemaCheck } from './schema-check.ts';
export { type SchemaFailureMetrics, SchemaFailures } from './schema-failures.ts';
export { StoreQueue } from './store-queue.ts';
export { Subscriptions } from './subscriptions.ts';
export { TenantRates } from './tenant-rates.ts';
export { UnwrittenWatch } from './unwritten-watch.ts';
