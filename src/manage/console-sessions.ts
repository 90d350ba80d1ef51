/** Starts and ends the sessions of people who sign in to the console. */
import type { Clock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';
import { inTransaction, type Pool } from '../postgres/database.ts';
import { createSession, deleteSession, type SessionRecord } from '../postgres/queries/console-sessions.ts';
import { type ApiKeyFormat, hashApiKey } from './api-keys.ts';
import type { AuditTrail, Change } from './audit-trail.ts';
import type { Actor, Caller } from './caller.ts';

export interface ConsoleSessionOptions {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly tokenFormat: ApiKeyFormat;
  readonly lifetimeMs: number;
}

/** A person as the identity provider names them, and what they may do. */
export type Person = Omit<SessionRecord, 'id' | 'expires_at'>;

/** Returns the trail that records a change made by this caller. */
export type AuditFor = (caller: Caller) => AuditTrail;

/** Starts a session and returns its token. The database has only the hash of the token. */
export async function startSession(
  { pool, clock, tokenFormat, lifetimeMs }: ConsoleSessionOptions,
  person: Person,
  auditFor: AuditFor,
): Promise<string> {
  const token = tokenFormat.generate();
  const id = newId(clock.now());
  const caller = callerOf(person);
  await inTransaction(pool, async (client) => {
    await createSession(client, { id, hash: hashApiKey(token), ...person }, lifetimeMs);
    await auditFor(caller).record(client, changeOf(caller));
  });
  return token;
}

/** Ends a session in all processes. Records nothing if it has ended already. */
export async function endSession(pool: Pool, token: string, { caller, audit }: Actor): Promise<void> {
  await inTransaction(pool, async (client) => {
    if (await deleteSession(client, hashApiKey(token))) await audit.record(client, changeOf(caller));
  });
}

const changeOf = ({ tenant }: Caller): Change => ({ tenant, objectId: null });

export const callerOf = ({ subject, name, scope, tenant }: Person): Caller => ({
  keyId: null,
  scope,
  scopes: null,
  tenant,
  prefix: name,
  user: subject,
});
