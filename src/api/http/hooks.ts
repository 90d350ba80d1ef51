/** The hooks of one kind that a route has: Fastify allows one, several or none. */
export function listOf<T>(hooks: T | T[] | undefined): T[] {
  if (hooks === undefined) return [];
  return Array.isArray(hooks) ? hooks : [hooks];
}
