/**
 * The one contract of everything that runs in the background. `start` resolves when the service does its work,
 * `stop` when nothing of it is left running (no timer, no socket, no promise). Both may be called twice, and
 * `stop` before `start` is allowed.
 */
export interface Service {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts in order; if one fails, those already started are stopped again, in reverse. */
export async function startAll(services: readonly Service[]): Promise<void> {
  const started: Service[] = [];
  for (const service of services) {
    try {
      await service.start();
      started.push(service);
    } catch (error) {
      await stopAll(started).catch(() => {});
      throw error;
    }
  }
}

/** Stops in reverse order. One that fails does not keep the others running; the first error is thrown at the end. */
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
