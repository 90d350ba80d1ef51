/** The values that PostgreSQL refuses, so that both stores refuse the same batches. */
import type { BreakerRecord } from '../domain/breaker.ts';
import type { Settlement } from '../ports/delivery-queue.ts';
import type { EventRecord } from '../ports/event-store.ts';
import { StoreError } from '../ports/store-error.ts';

const END_OF_TIMESTAMPS_MS = 9_224_318_016_000_000;
const MAX_SMALLINT = 32_767;

const refuse = (what: string): never => {
  throw new StoreError('invalid_row', `${what} cannot be stored.`);
};

function checkText(what: string, text: string | null): void {
  if (text?.includes('\u0000')) refuse(`${what} with a NUL character`);
}

function checkTime(what: string, ms: number | null): void {
  if (ms !== null && !(ms < END_OF_TIMESTAMPS_MS)) refuse(`${what} ${ms}`);
}

/** Throws `StoreError('invalid_row')`. */
export function checkEvent({ tenant, type, idempotencyKey, options, deliveries }: EventRecord): void {
  checkText('A tenant', tenant);
  checkText('A type', type);
  checkText('An idempotency key', idempotencyKey);
  if (options !== null && JSON.stringify(options).includes('\\u0000')) refuse('Options with a NUL character');
  for (const { dueAt } of deliveries) checkTime('The time', dueAt);
}

/** Throws `StoreError('invalid_row')`. */
export function checkSettlement({ verdict, attempt }: Settlement): void {
  if (verdict.kind === 'retry') checkTime('The time', verdict.dueAt);
  const status = attempt?.outcome.statusCode ?? 0;
  if (status > MAX_SMALLINT) refuse(`The status code ${status}`);
}

/** Throws `StoreError('invalid_row')`. A circuit that is not closed has a time of opening and of its next probe. */
export function checkBreaker({ circuit, openedAt, nextProbeAt }: BreakerRecord): void {
  const isClosed = circuit === 'closed';
  if (isClosed !== (openedAt === null) || isClosed !== (nextProbeAt === null))
    refuse(`A circuit that is ${circuit}, opened at ${openedAt}, with a probe at ${nextProbeAt},`);
}

/** Replaces characters that PostgreSQL's text type cannot store: NUL and lone surrogates. */
export function toStorableText(text: string): string {
  return text.toWellFormed().replaceAll('\u0000', '\ufffd');
}
