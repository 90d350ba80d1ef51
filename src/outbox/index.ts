export type { OutboxLag } from '../ports/outbox-store.ts';
export { outboxLag } from '../postgres/queries/outbox.ts';
export { Drainer, type DrainerOptions } from './drainer.ts';
export { type OutboxEvent, publish, type Transaction } from './publish.ts';
export { checkSource } from './relay/check-source.ts';
export { initStatements, runInit } from './relay/init.ts';
export { PosthornSink } from './relay/posthorn-sink.ts';
export { Relay } from './relay/relay.ts';
export { RelayError } from './relay/relay-error.ts';
