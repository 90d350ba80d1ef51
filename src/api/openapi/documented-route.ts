import type { FastifyContextConfig, FastifySchema } from 'fastify';

export interface DocumentedRoute {
  readonly method: string;
  readonly url: string;
  readonly schema: FastifySchema;
  readonly config: FastifyContextConfig;
  /** A GET without HEAD. */
  readonly noHead?: boolean;
}

/** The least that a key must be for: looking, changing what belongs to its tenant, or everything. */
export type Role = 'read' | 'write' | 'admin';

export function roleOf({ method, config }: DocumentedRoute): Role {
  if (config.admin === true) return 'admin';
  return (config.reads ?? method === 'GET') ? 'read' : 'write';
}
