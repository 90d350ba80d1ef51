import type { Config } from '../config/index.ts';

type ProcessRole = Config['role'];

/**
 * Returns the role of each child of `serve --processes N`. One in three (at least one) answers the API, the others
 * deliver: fewer processes that accept write larger batches, and sending does not delay answers. Measured in
 * `docs/adr/0013-children-divide-the-work.md`.
 *
 * The first child answers the API: if it cannot listen, its error is printed before the others are started.
 */
export function rolesOfChildren(role: ProcessRole, processes: number): ProcessRole[] {
  if (role !== 'all') return Array.from({ length: processes }, () => role);
  const apiChildren = Math.max(1, Math.floor(processes / 3));
  return Array.from({ length: processes }, (_, index) => (index < apiChildren ? 'api' : 'worker'));
}
