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
export type KeyRole = 'read' | 'write' | 'admin';

/** The scopes that a narrowed key needs. Empty: every key may call it. Null: no narrowed key may. */
export function scopesOf({ config }: DocumentedRoute): readonly string[] | null {
  if (config.needs === undefined || config.needs === 'any') return [];
  return config.needs === 'unnarrowed' ? null : config.needs;
}

export function roleOf({ method, config }: DocumentedRoute): KeyRole {
  if (config.admin === true) return 'admin';
  return (config.reads ?? method === 'GET') ? 'read' : 'write';
}
