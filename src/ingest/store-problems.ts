/** The problems that a caller gets when its event could not be stored. */
import { Problem } from '../domain/problem.ts';

export const rejectedValue = (cause: unknown): Problem =>
  new Problem('invalid', 'The event cannot be stored: the database rejects one of its values.', { cause });

export const storeDidNotAnswer = (cause: unknown): Problem =>
  new Problem(
    'unavailable',
    'The database did not answer in time. The event may or may not be stored: try again with the same idempotency key.',
    { retryAfterSeconds: 2, cause },
  );

/** For an event whose statement timed out although it held no other event. Nothing was written. */
export const tookTooLong = (cause: unknown): Problem =>
  new Problem(
    'unavailable',
    'The event was not stored: storing it with its deliveries took longer than the database allows. Try again later.',
    { retryAfterSeconds: 2, cause },
  );

/** For an event that waited behind too many others of its tenant. Nothing was written. */
export const waitedTooLong = (): Problem =>
  new Problem(
    'overloaded',
    'The event was not stored: too many events of its tenant were waiting to be stored. Send it again after the time in Retry-After.',
    { retryAfterSeconds: 5 },
  );

/** For an event whose tenant changed its endpoints each time before the event could be stored. Nothing was written. */
export const endpointsKeptChanging = (): Problem =>
  new Problem(
    'unavailable',
    'The event was not stored: the endpoints of its tenant changed all the time. Send it again after the time in Retry-After.',
    { retryAfterSeconds: 2 },
  );

/** For an event with a large fan-out whose tenant has too many deliveries that are not written yet. This request wrote nothing. */
export const tooManyUnwritten = (tenant: string, maxUnwritten: number): Problem =>
  new Problem(
    'rate_limited',
    `The event was refused: the tenant "${tenant}" has ${maxUnwritten} or more deliveries of large fan-outs that are not written yet. Try again after the time in Retry-After.`,
    { retryAfterSeconds: 5 },
  );

/** For an event that matches more endpoints than its id has ordinals for. Nothing was written. */
export const tooManyEndpoints = (matched: number, maxDeliveries: number): Problem =>
  new Problem(
    'invalid',
    `The event matches ${matched} endpoints, and an event can have at most ${maxDeliveries} deliveries. Nothing was stored: publish it several times, with \`channels\` or \`endpoint_ids\` that divide the endpoints.`,
  );

/** For an event that may or may not be in the log. */
export const logDidNotAnswer = (cause: unknown): Problem =>
  new Problem(
    'unavailable',
    'Kafka did not confirm the event in time. The event may or may not be stored: try again with the same idempotency key.',
    { retryAfterSeconds: 2, cause },
  );

/** For an event that arrived before this process could reach the log. Nothing was stored. */
export const logIsUnavailable = (): Problem =>
  new Problem('unavailable', 'The event was not stored: Kafka does not answer. Try again later.', {
    retryAfterSeconds: 2,
  });

/** For an event that Kafka does not take, alone in its batch. Nothing was stored. */
export const tooLargeForLog = (cause: unknown): Problem =>
  new Problem(
    'too_large',
    'The event was not stored: with its headers, channels and endpoint_ids it is larger than the Kafka topic takes (max.message.bytes).',
    { cause },
  );

/** For an event whose idempotency key could not be checked. The event is not in the log. */
export const claimFailed = (cause: unknown): Problem =>
  new Problem(
    'unavailable',
    'The event was not stored: the database that has the idempotency keys did not answer. Try again with the same key.',
    { retryAfterSeconds: 2, cause },
  );
