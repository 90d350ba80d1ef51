import type { FastifyPluginAsync } from 'fastify';
import { Type } from 'typebox';
import type { Clock } from '../../domain/clock.ts';
import type { HealthDependencies } from '../dependencies.ts';
import { Nullable } from '../http/validation.ts';

const Alive = Type.Object({ status: Type.Literal('ok') }, { title: 'Alive', examples: [{ status: 'ok' }] });
const Outbox = Type.Object({
  oldest_age_seconds: Type.Number({
    description: 'Age of the oldest row in the outbox. 0: the outbox is empty.',
  }),
  rejected: Type.Integer({ description: 'Rows that could not become events, counted up to 1000.' }),
});
/** Without their names: this route needs no key, and a name tells where a database is. */
const Relays = Type.Object({
  sources: Type.Integer({ description: 'Number of databases that relays read or have read.' }),
  oldest_age_seconds: Type.Number({
    description: 'Age of the oldest event that no relay has stored yet. It grows while its relay is down.',
  }),
  troubled: Type.Integer({
    description: 'Number of sources with a problem. The log of the relay says what it is.',
  }),
});
const Ready = Type.Object(
  {
    status: Type.Literal('ready'),
    outbox: Nullable(Outbox),
    relays: Nullable(Relays),
    regions_without_workers: Nullable(
      Type.Array(Type.String(), {
        description: 'Regions that endpoints name and that have no worker: their deliveries wait.',
      }),
    ),
  },
  {
    title: 'Ready',
    examples: [
      {
        status: 'ready',
        outbox: { oldest_age_seconds: 0, rejected: 0 },
        relays: { sources: 1, oldest_age_seconds: 0, troubled: 0 },
        regions_without_workers: [],
      },
    ],
  },
);
const NotReady = Type.Object(
  { status: Type.Literal('not_ready'), detail: Type.String({ description: 'What is missing.' }) },
  { title: 'NotReady', examples: [{ status: 'not_ready', detail: 'The database does not answer.' }] },
);

type HealthContext = HealthDependencies & { readonly clock: Clock };

/** How long a probe waits for figures that do not affect its result. */
const FIGURES_MS = 200;

/** Wraps `read`: resolves with null if it fails or takes too long. Concurrent probes share one call. */
function readInTime<T>({ clock }: HealthContext, read: () => Promise<T>): () => Promise<T | null> {
  let pending: Promise<T> | null = null;
  return () => {
    pending ??= read().finally(() => {
      pending = null;
    });
    const late = Promise.withResolvers<null>();
    const cancel = clock.after(FIGURES_MS, () => late.resolve(null));
    return Promise.race([pending.catch(() => null), late.promise]).finally(cancel);
  };
}

export function healthRoutes(context: HealthContext): FastifyPluginAsync {
  const outboxLag = readInTime(context, context.outboxLag);
  const relaySources = readInTime(context, context.relaySources);
  const regions = readInTime(context, context.regions);

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
          summary: 'Is the server ready for requests?',
          description:
            'Ready means that the database answers and accepts writes, that live workers own the shards and can read deliveries and record results, and, if this process delivers, that its lease is valid. `detail` says what is missing.',
          tags: ['Service'],
          response: { 200: Ready, 503: NotReady },
        },
      },
      async (_request, reply) => {
        const missing = await context.findMissing();
        if (missing !== null)
          return reply.code(503).header('retry-after', 1).send({ status: 'not_ready', detail: missing });
        // These figures do not affect readiness: a server with a backlog is ready, and removing it would not help.
        const [outbox, relays, known] = await Promise.all([outboxLag(), relaySources(), regions()]);
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
          regions_without_workers:
            known?.filter(({ workers, isUsed }) => workers === 0 && isUsed).map(({ name }) => name) ?? null,
        };
      },
    );
  };
}
