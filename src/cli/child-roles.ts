import type { Config } from '../config/index.ts';

type Role = Config['role'];

/**
 * What each child of `serve --processes N` does. One in three accepts, the others deliver, and at least one does each:
 * fewer that accept write larger batches, and a request that is being sent does not hold up one that is being answered.
 * Measured in `docs/adr/0013-children-divide-the-work.md`.
 *
 * The first one answers the API: what it says when it cannot listen is said before the others are started.
 */
export function rolesOfChildren(role: Role, processes: number): Role[] {
  if (role !== 'all') return Array.from({ length: processes }, () => role);
  const accepting = Math.max(1, Math.floor(processes / 3));
  return Array.from({ length: processes }, (_, index) => (index < accepting ? 'api' : 'worker'));
}
