import type { ConfigWithKeys } from '../config/index.ts';
import type { Log } from '../telemetry/log.ts';
import type { Sample } from '../telemetry/metrics/index.ts';

export interface RunningApp {
  readonly url: string;
  readonly adminKey?: string;
  readMetrics(): Sample[];
  stop(): Promise<void>;
}

export type RunnableConfig = ConfigWithKeys & { readonly databaseUrl: string };

interface AppOptions {
  readonly config: RunnableConfig;
  readonly log: Log;
  /** False: other processes of this node answer the API. */
  readonly listens?: boolean;
  /**
   * Gathers the metrics of all processes of this node, if there are several. Resolves with null if they cannot be
   * reached.
   */
  readonly gatherMetrics?: () => Promise<Sample[] | null>;
  readonly program?: string | undefined;
  readonly siblings?: { readonly directory: string; readonly number: number } | undefined;
}

/** Loaded only when a server is started: `posthorn help` should not wait for Fastify and undici. */
const loadApp = () => import('../app.ts') as Promise<{ startApp(given: AppOptions): Promise<RunningApp> }>;

/** Loads the app while the embedded database starts. `startApp` reports errors of the import. */
export function preloadApp(): void {
  loadApp().catch(() => {});
}

export async function startApp(options: AppOptions): Promise<RunningApp> {
  return (await loadApp()).startApp({ ...options, program: process.argv[1] });
}
