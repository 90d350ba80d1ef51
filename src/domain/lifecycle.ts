/**
 * The contract of everything that runs in the background. `start` resolves when the service works, `stop` when nothing
 * of it is left running (no timer, no socket, no promise). Both may be called twice, and `stop` without `start`.
 */
export interface Service {
  start(): void | Promise<void>;
  stop(): void | Promise<void>;
}

/** Starts services in order. If one fails, stops all of them. */
export async function startAll(services: readonly Service[]): Promise<void> {
  try {
    for (const service of services) await service.start();
  } catch (error) {
    await stopAll(services).catch(() => {});
    throw error;
  }
}

/**
 * Stops services in reverse order. A failure does not keep the others running; the first error is thrown at the end.
 */
export async function stopAll(services: readonly Service[]): Promise<void> {
  const failures: unknown[] = [];
  for (const service of services.toReversed()) {
    try {
      await service.stop();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

/** Combines services that do not depend on each other into one. `stop` waits for all of them, even if one fails. */
export function inParallel(...services: readonly (Service | null)[]): Service {
  const present = services.filter((service) => service !== null);
  return {
    start: async () => void (await Promise.all(present.map((service) => service.start()))),
    async stop() {
      const results = await Promise.allSettled(present.map(async (service) => service.stop()));
      for (const result of results) if (result.status === 'rejected') throw result.reason;
    },
  };
}

/** Makes a service that only has to be stopped. */
export function onStop(stop: () => unknown): Service {
  return {
    start: () => {},
    stop: async () => {
      await stop();
    },
  };
}
