/** What routes say about themselves in `schema`, besides what Fastify itself reads. */
declare module 'fastify' {
  interface FastifySchema {
    operationId?: string;
    summary?: string;
    description?: string;
    tags?: readonly string[];
  }
}

export {};
