import type { Server } from 'node:net';
import type { AppOptions } from './app.ts';
import type { AppParts } from './compose-app.ts';
import { withListeningPort } from './config/index.ts';
import type { Service } from './domain/lifecycle.ts';

/** Listens for requests, unless other processes of this node do. */
export class Listener implements Service {
  url: string;
  readonly #servers: AppParts['servers'];
  readonly #options: AppOptions;
  readonly #address: { publicUrl: string };

  constructor(servers: AppParts['servers'], options: AppOptions, address: { publicUrl: string }) {
    this.#servers = servers;
    this.#options = options;
    this.#address = address;
    this.url = options.config.publicUrl;
  }

  async start(): Promise<void> {
    const { config, listens = true, takeOverPort, onListening } = this.#options;
    if (!listens) return;
    const { server, metricsServer } = this.#servers;
    // Before the port is taken over: it takes up to a second.
    await server.ready();
    const socket = socketOf((await takeOverPort?.()) ?? null);
    this.url = await server.listen({ port: config.port, host: config.host, ...socket });
    await onListening?.();
    if (config.metricsAddr !== null) await metricsServer?.listen({ ...config.metricsAddr });
    this.#address.publicUrl = withListeningPort(config, Number(new URL(this.url).port)).publicUrl;
  }

  async stop(): Promise<void> {
    const { server, metricsServer } = this.#servers;
    await Promise.all([server.close(), metricsServer?.close()]);
  }
}

/** Node listens on the socket of another server (`server.listen(handle)`), and Fastify passes its options to Node. */
function socketOf(server: Server | null): object {
  return server === null ? {} : { handle: (server as Server & { readonly _handle: object })._handle };
}
