export { type AcceptOptions, Acceptor, type CommittedDelivery } from './accept.ts';
export { expectJson, JsonDepthError, JsonSyntaxError } from './json-scan.ts';
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
export type { Accepted } from './waiting.ts';
