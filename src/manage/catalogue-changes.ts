/** What changes of event types and of their versions have in common. */
import { type Client, inTransaction, type Pool } from '../postgres/database.ts';

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
