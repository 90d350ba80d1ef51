export type { OutboxLag } from '../ports/outbox-store.ts';
export { type CommittedEventSink, Drainer, type DrainerOptions } from './drainer.ts';
export { type OutboxEvent, publish, type Transaction } from './publish.ts';
