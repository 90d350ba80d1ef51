/**
 * Verifies webhooks, and handles each of them once.
 *
 * @example
 * const verifier = createVerifier({ secret: 'whsec_…' });
 * const { id, payload } = await verifier.verify(rawBody, headers);
 */
export {
  type Deduplicator,
  handleOnce,
  type OnceResult,
  type ReceiptKey,
  type ReceiptStore,
} from './deduplicator.ts';
export { VerificationError, type VerificationReason, verificationReasons } from './errors.ts';
export type { HeadersLike } from './headers.ts';
export { type MemoryOptions, memoryDeduplicator } from './memory-deduplicator.ts';
export {
  type PostgresDeduplicator,
  type PostgresOptions,
  postgresDeduplicator,
  type Query,
} from './postgres-deduplicator.ts';
export type { Profile } from './profiles.ts';
export {
  createVerifier,
  type RawBody,
  type VerifiedWebhook,
  type Verifier,
  type VerifierOptions,
} from './verifier.ts';
