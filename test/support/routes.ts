import type { ApiContext } from '../../src/api/context.ts';
import { createServer } from '../../src/api/server.ts';

/** Every route of the API, as the server itself knows them. */
export async function allRoutes(): Promise<{ method: string; path: string }[]> {
  const context = {
    limits: { maxEventBytes: 1024, maxBatchBytes: 1024 },
    clock: { now: Date.now },
  } as unknown as ApiContext;
  const server = await createServer(context, {
    requestTimeoutMs: 1000,
    closeWithinMs: 1000,
    healthOnly: false,
  });
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
