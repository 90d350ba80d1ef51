import type { FastifyPluginAsync } from 'fastify';
import { Type } from 'typebox';
import type { Clock } from '../../domain/clock.ts';
import type { HealthDependencies } from '../dependencies.ts';
import { Nullable } from '../http/validation.ts';

const Alive = Type.Object({ status: Type.Literal('ok') }, { title: 'Alive', examples: [{ status: 'ok' }] });
const Outbox = Type.Object({
  oldest_age_seconds: Type.Number({
    description: 'How long the oldest row of the outbox has waited; 0: none does.',
  }),
  rejected: Type.Integer({ description: 'Rows that could not become events, counted up to 1000.' }),
});
/** Without their names: nobody had to show a key to ask, and a name says where a database is. */
const Relays = Type.Object({
  sources: Type.Integer({ description: 'Other databases that relays read, or have read.' }),
  oldest_age_seconds: Type.Number({
    description: 'How long the oldest event in any of them has waited; grows while its relay is silent.',
  }),
  troubled: Type.Integer({ description: 'How many have a problem just now. The relay logs what it is.' }),
});
const Ready = Type.Object(
  { status: Type.Literal('ready'), outbox: Nullable(Outbox), relays: Nullable(Relays) },
  {
    title: 'Ready',
    examples: [
      {
        status: 'ready',
        outbox: { oldest_age_seconds: 0, rejected: 0 },
        relays: { sources: 1, oldest_age_seconds: 0, troubled: 0 },
      },
    ],
  },
);
const NotReady = Type.Object(
  { status: Type.Literal('not_ready'), detail: Type.String({ description: 'What is missing.' }) },
  { title: 'NotReady', examples: [{ status: 'not_ready', detail: 'The database does not answer.' }] },
);

type HealthContext = HealthDependencies & { readonly clock: Clock };

/** How long a probe waits for figures that decide nothing. */
const FIGURES_MS = 200;

/** Null: it failed, or takes longer than a probe should. Asked for once, however many probes come meanwhile. */
function inTime<T>({ clock }: HealthContext, ask: () => Promise<T>): () => Promise<T | null> {
  let asked: Promise<T> | null = null;
  return () => {
    asked ??= ask().finally(() => {
      asked = null;
    });
    const late = Promise.withResolvers<null>();
    const cancel = clock.after(FIGURES_MS, () => late.resolve(null));
    return Promise.race([asked.catch(() => null), late.promise]).finally(cancel);
  };
}

export function healthRoutes(context: HealthContext): FastifyPluginAsync {
  const outboxLag = inTime(context, context.outboxLag);
  const relaySources = inTime(context, context.relaySources);

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
          description:
            'Ready means that the database answers and takes writes, that living workers own the shards, and, if this process delivers, that it has lately proven that it may. `detail` says what is missing.',
          tags: ['Service'],
          response: { 200: Ready, 503: NotReady },
        },
      },
      async (_request, reply) => {
        const missing = await context.notReady();
        if (missing !== null)
          return reply.code(503).header('retry-after', 1).send({ status: 'not_ready', detail: missing });
        // Told, not judged: a server that has a lot to catch up with is ready, and taking it away would not help.
        const [outbox, relays] = await Promise.all([outboxLag(), relaySources()]);
        return {
          status: 'ready',
          outbox: outbox && {
            oldest_age_seconds: Math.round(outbox.lagMs) / 1000,
            rejected: outbox.rejected,
          },
          relays: relays && {
            sources: relays.length,
            oldest_age_seconds:
              Math.round(Math.max(0, ...relays.map((relay) => relay.lagSeconds)) * 1000) / 1000,
            troubled: relays.filter((relay) => relay.problem !== null).length,
          },
        };
      },
    );
  };
}
