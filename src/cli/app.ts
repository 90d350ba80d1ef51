import type { App, AppConfig, AppOptions } from '../app.ts';

/** The server of a command. `adminKey` is set if the command created the key. */
export type RunningApp = Omit<App, 'publish'> & { readonly adminKey?: string };

export type RunnableConfig = AppConfig;

/** Loaded only when a server is started: `posthorn help` should not wait for Fastify and undici. */
const loadApp = () => import('../app.ts');

/** Loads the app while the embedded database starts. `startApp` reports errors of the import. */
export function preloadApp(): void {
  loadApp().catch(() => {});
}

export async function startApp(options: AppOptions): Promise<RunningApp> {
  return (await loadApp()).startApp({ ...options, program: process.argv[1] });
}
