/** Many connections read the document of a catalogue: it is written once for each state of the catalogue, and is never outdated. */
import Fastify from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { catalogueDocumentRoutes } from '../../src/api/event-types/document-routes.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { expectStatus, usePosthorn } from '../support/posthorn.ts';

const posthorn = usePosthorn({ inProcess: true });
const read = async (): Promise<string> =>
  (await expectStatus(posthorn.api('GET', '/v1/catalogue/openapi.json'), 200)).text;

test('the document follows every change of the catalogue', async () => {
  const type = (title: string) => ({ schema: { type: 'object', title } });
  await expectStatus(posthorn.api('PUT', '/v1/event-types/a.b', type('First')), 201);
  expect(await read()).toContain('First');
  await expectStatus(posthorn.api('PUT', '/v1/event-types/a.b', type('Second')), 200);
  expect(await read()).toContain('Second');
  // Also a change that another program makes.
  await posthorn.database.query("update posthorn.event_types set description = 'By hand' where name = 'a.b'");
  expect(await read()).toContain('By hand');
  await expectStatus(posthorn.api('DELETE', '/v1/event-types/a.b'), 204);
  expect(await read()).not.toContain('a.b');
});

test('100 requests read the schemas from the database once', async () => {
  await expectStatus(posthorn.api('PUT', '/v1/event-types/a.c', {}), 201);
  const database = openDatabase({
    connectionString: posthorn.database.url,
    apiConnections: 2,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  onTestFinished(() => database.close());
  const pool = database.pool('api');
  const texts: string[] = [];
  const counting = {
    query(query: string | { text: string }, ...values: never[]) {
      texts.push(typeof query === 'string' ? query : query.text);
      return pool.query(query as never, ...values);
    },
  };
  const server = Fastify();
  await server.register(catalogueDocumentRoutes(counting as never));
  onTestFinished(() => server.close());
  const answers = await Promise.all(
    Array.from({ length: 100 }, () => server.inject('/catalogue/openapi.json')),
  );
  for (const answer of answers) expect(answer.body).toContain('a.c');
  expect(texts.filter((text) => /schema.*from posthorn\.event_types order by name/s.test(text))).toHaveLength(
    1,
  );
});
