/** What changes of event types and of their versions have in common. */
import { type Client, inTransaction, type Pool } from '../postgres/database.ts';
import type { AuditAction } from './audit-actions.ts';
import { fieldChanges } from './audit-trail.ts';
import type { Actor } from './caller.ts';

export interface CatalogueOptions {
  readonly pool: Pool;
  /** Makes this process read the catalogue again. Others are notified. */
  readonly onCatalogueChanged: () => Promise<void>;
}

/** Changes the catalogue in one transaction. Resolves when this process knows the change. */
export async function changeCatalogue<T>(
  { pool, onCatalogueChanged }: CatalogueOptions,
  change: (client: Client) => Promise<T>,
): Promise<T> {
  const answer = await inTransaction(pool, change);
  await onCatalogueChanged();
  return answer;
}

type Fields = Readonly<Record<string, unknown>>;

export interface Replacement {
  /** Null: it is created. */
  readonly before: Fields | null;
  readonly after: Fields;
  readonly objectId: string;
  readonly create: AuditAction;
  readonly update: AuditAction;
}

/** Records what a PUT changes in the audit log, without the values of examples. Returns false if it changes nothing. */
export async function recordReplacement(
  client: Client,
  { audit }: Actor,
  { before, after, objectId, create, update }: Replacement,
): Promise<boolean> {
  const changes = fieldChanges(before ?? {}, after, (field) => field !== 'example');
  if (before !== null && changes.length === 0) {
    audit.markUnchanged();
    return false;
  }
  await audit.record(client, { action: before === null ? create : update, tenant: null, objectId, changes });
  return true;
}
