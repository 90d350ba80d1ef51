/** Deletes rows whose retention ends before that of their partition: payloads, dead letters, events of some tenants. */
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import { cutoffOf, expiresFirst, type RetentionDays } from '../domain/retention.ts';
import type { RowExpirer } from '../ports/retention-store.ts';
import { halvingChunks } from './halving-chunks.ts';

export interface ExpireRowsOptions {
  readonly store: RowExpirer;
  readonly clock: Clock;
  readonly days: Pick<RetentionDays, 'events' | 'payloads' | 'deadLetters'>;
  /**
   * Where the next round continues, by tenant. Events that a dead letter needs stay, and there may be more of them than a round reads:
   * if each round began with them, the events after them would never be deleted.
   */
  readonly tenantPositions: Map<string, Uuid>;
  readonly onDeadLettersExpired: (count: number, endpointIds: readonly Uuid[]) => void;
  readonly onProblem: (what: string, error: unknown) => void;
}

const ROWS_PER_CHUNK = 500;
/** The limit per kind and round. The rest waits for the next round, so that other upkeep gets its turn. */
const CHUNKS_PER_ROUND = 200;
/**
 * Payloads expire as fast as events arrive, so a round strips them for this long. The pause after each chunk is as
 * long as the chunk took.
 */
const MAX_STRIPPING_MS = 40_000;

export async function expireRows(options: ExpireRowsOptions, isStopped: () => boolean): Promise<void> {
  // Run them one after the other. If one fails, the others still run.
  await attempt(options, 'discard expired dead letters', () => expireDeadLetters(options, isStopped));
  await attempt(options, 'delete expired payloads', () => stripPayloads(options, isStopped));
  await attempt(options, 'delete expired events of tenants', () => expireTenantEvents(options, isStopped));
}

async function attempt(
  { onProblem }: ExpireRowsOptions,
  what: string,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    onProblem(what, error);
  }
}

async function expireDeadLetters(
  { store, clock, days, onDeadLettersExpired }: ExpireRowsOptions,
  isStopped: () => boolean,
): Promise<void> {
  const cutoffMs = cutoffOf(days.deadLetters, clock.now());
  if (cutoffMs === null) return;
  const inChunk = halvingChunks(ROWS_PER_CHUNK, isStopped);
  for (let chunks = 0; chunks < CHUNKS_PER_ROUND && !isStopped(); chunks += 1) {
    const isLast = await inChunk(async (max) => {
      const { count, endpointIds } = await store.expireDeadLetters(cutoffMs, max);
      if (count > 0) onDeadLettersExpired(count, endpointIds);
      return count < max;
    });
    if (isLast) return;
  }
}

async function stripPayloads(
  { store, clock, days }: ExpireRowsOptions,
  isStopped: () => boolean,
): Promise<void> {
  const cutoffMs = cutoffOf(days.payloads, clock.now());
  if (cutoffMs === null || days.payloads === days.events) return;
  const inChunk = halvingChunks(ROWS_PER_CHUNK, isStopped);
  const startedAt = clock.monotonic();
  while (!isStopped()) {
    const chunkStartedAt = clock.monotonic();
    if (!(await inChunk((max) => store.stripPayloads(cutoffMs, max)))) return;
    const now = clock.monotonic();
    if (now - startedAt >= MAX_STRIPPING_MS) return;
    await new Promise<void>((resolve) => clock.after(now - chunkStartedAt, resolve));
  }
}

async function expireTenantEvents(options: ExpireRowsOptions, isStopped: () => boolean): Promise<void> {
  const {
    store,
    clock,
    days: { events },
    tenantPositions,
  } = options;
  for (const { tenant, days } of await store.listTenantRetentions()) {
    // The global retention may have become shorter since: then upkeep drops the whole partitions first.
    if (events !== 0 && expiresFirst(events, days)) continue;
    const cutoffMs = cutoffOf(days, clock.now())!;
    await attempt(options, 'delete expired events of a tenant', async () => {
      const inChunk = halvingChunks(ROWS_PER_CHUNK, isStopped);
      for (let chunks = 0; chunks < CHUNKS_PER_ROUND && !isStopped(); chunks += 1) {
        const from = tenantPositions.get(tenant) ?? null;
        const after = await inChunk((max) => store.deleteTenantEvents(tenant, cutoffMs, from, max));
        if (after === null) {
          tenantPositions.delete(tenant);
          return;
        }
        tenantPositions.set(tenant, after);
      }
    });
  }
}
