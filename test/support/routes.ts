/** The API without a database: its routes and its OpenAPI document. */
import type { FastifyInstance } from 'fastify';
import { createApi } from '../../src/api/create-api.ts';
import type { ApiDependencies } from '../../src/api/dependencies.ts';
import type { OpenApiDocument } from '../../src/api/openapi/document.ts';

/** A server that answers only requests that need no database. */
export async function hollowServer(): Promise<FastifyInstance> {
  const dependencies = {
    clock: { now: Date.now },
    publicUrl: 'https://posthorn.example',
    manage: {},
    access: {},
    publishing: { limits: { maxEventBytes: 1024, maxBatchBytes: 1024 } },
    portalOrigins: [],
    liveTail: {},
    health: {},
  } as unknown as ApiDependencies;
  return createApi(dependencies, {
    requestTimeoutMs: 1000,
    answerTimeoutMs: 1000,
    closeWithinMs: 1000,
    healthOnly: false,
  });
}

export async function readDocument(): Promise<OpenApiDocument> {
  const server = await hollowServer();
  const answer = await server.inject('/openapi.json');
  await server.close();
  return answer.json();
}

/** Every route, found in the router itself. */
export async function allRoutes(): Promise<{ method: string; path: string }[]> {
  const server = await hollowServer();
  await server.ready();
  const parts: string[] = [];
  const routes = server
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .flatMap((line) => {
      const found = /^([│├└─\s]*)(\S+)(?: \((.+)\))?$/.exec(line);
      if (found === null) return [];
      const depth = found[1]!.length / 4 - 1;
      parts.splice(depth, parts.length, found[2]!);
      const methods = found[3]?.split(', ') ?? [];
      return methods.map((method) => ({ method, path: parts.join('').replace(/(.)\/$/, '$1') }));
    });
  await server.close();
  return routes.filter(({ method }) => method !== 'HEAD');
}
