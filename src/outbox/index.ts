export { type OutboxLag, outboxLag } from '../store/queries/outbox.ts';
export { Drainer, type DrainerOptions } from './drainer.ts';
