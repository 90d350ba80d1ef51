import type { FastifyPluginAsync } from 'fastify';
import { Type } from 'typebox';
import type { ApiContext } from './context.ts';

const Alive = Type.Object({ status: Type.Literal('ok') }, { title: 'Alive', examples: [{ status: 'ok' }] });
const Ready = Type.Object(
  { status: Type.Literal('ready') },
  { title: 'Ready', examples: [{ status: 'ready' }] },
);
const NotReady = Type.Object(
  { status: Type.Literal('not_ready'), detail: Type.String({ description: 'What is missing.' }) },
  { title: 'NotReady', examples: [{ status: 'not_ready', detail: 'The database does not answer.' }] },
);

export function healthRoutes(context: ApiContext): FastifyPluginAsync {
  return async (server) => {
    server.get(
      '/healthz',
      {
        schema: {
          operationId: 'getHealth',
          summary: 'Is the process alive?',
          tags: ['Service'],
          response: { 200: Alive },
        },
      },
      async () => ({ status: 'ok' }),
    );
    server.get(
      '/readyz',
      {
        schema: {
          operationId: 'getReadiness',
          summary: 'Can it take requests?',
          description: 'Ready means that the database answers and that this process may send.',
          tags: ['Service'],
          response: { 200: Ready, 503: NotReady },
        },
      },
      async (_request, reply) => {
        const missing = await context.notReady();
        if (missing === null) return { status: 'ready' };
        return reply.code(503).header('retry-after', 1).send({ status: 'not_ready', detail: missing });
      },
    );
  };
}
