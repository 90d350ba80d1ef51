import type { FastifyContextConfig, FastifySchema } from 'fastify';

export interface DocumentedRoute {
  readonly method: string;
  readonly url: string;
  readonly schema: FastifySchema;
  readonly config: FastifyContextConfig;
  /** A GET route without a HEAD route. */
  readonly noHead?: boolean;
}

/** What a key must at least be allowed to do: read, change its tenant's objects, or everything. */
export type Role = 'read' | 'write' | 'admin';

export function roleOf({ method, config }: DocumentedRoute): Role {
  if (config.admin === true) return 'admin';
  return (config.reads ?? method === 'GET') ? 'read' : 'write';
}
