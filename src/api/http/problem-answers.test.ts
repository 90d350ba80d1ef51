import Fastify from 'fastify';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { Problem } from '../../domain/problem.ts';
import { answerProblems } from './problem-answers.ts';

it.each(['phk', 'phs', 'whsec', 'whsk'])(
  'an answer does not repeat a secret that begins with %s_',
  async (prefix) => {
    const server = Fastify();
    answerProblems(server, { log: pino({ enabled: false }), metrics: null }, []);
    server.get('/', async () => {
      throw new Problem('bad_request', `There is no ${prefix}_abcDEF123.`);
    });
    const { body } = await server.inject('/');
    expect(body).toContain(`${prefix}_****`);
    expect(body).not.toContain('abcDEF123');
    await server.close();
  },
);
