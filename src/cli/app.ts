import type { ConfigWithKeys } from '../config/index.ts';
import type { Log } from '../telemetry/log.ts';

export interface RunningApp {
  readonly url: string;
  readonly adminKey?: string;
  stop(): Promise<void>;
}

export type RunnableConfig = ConfigWithKeys & { readonly databaseUrl: string };

/** Loaded only when a server is started: `posthorn help` should not wait for Fastify and undici. */
export async function startApp(options: { config: RunnableConfig; log: Log }): Promise<RunningApp> {
  const app = (await import('../app.ts')) as { startApp(given: typeof options): Promise<RunningApp> };
  return app.startApp(options);
}
