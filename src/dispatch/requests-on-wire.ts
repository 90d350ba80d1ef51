/** Records the requests of lanes that this worker gives up, so that the next owner waits for their deadlines. */
import type { Clock } from '../domain/clock.ts';
import type { StartRecorder } from '../ports/delivery-queue.ts';
import type { Lane } from './lane.ts';
import type { Scheduler } from './scheduler.ts';

export interface RequestsOnWireOptions {
  readonly queue: Pick<StartRecorder, 'recordOnWire'>;
  readonly clock: Clock;
  readonly scheduler: Pick<Scheduler, 'startedAt'>;
  readonly onProblem: (what: string, error: unknown) => void;
}

const MAX_RECORD_TRIES = 5;
const RECORD_PAUSE_MS = 200;

/**
 * Includes deliveries whose result is not recorded yet: otherwise the next owner would send them again. It also sends
 * requests again whose start is not recorded. So this retries for as long as a slow store may take.
 */
export async function recordOnWire(lanes: readonly Lane[], options: RequestsOnWireOptions): Promise<void> {
  const { clock } = options;
  for (let tries = 1; !(await tryToRecord(lanes, options)) && tries < MAX_RECORD_TRIES; tries += 1)
    await new Promise<void>((resolve) => clock.after(RECORD_PAUSE_MS, resolve));
}

/** Returns false if the store failed. */
async function tryToRecord(
  lanes: readonly Lane[],
  { queue, clock, scheduler, onProblem }: RequestsOnWireOptions,
): Promise<boolean> {
  const now = clock.now();
  const onWire = lanes
    .flatMap((lane) => lane.underWay)
    .map((item) => ({ id: item.delivery.id, startedAt: scheduler.startedAt(item) ?? now }));
  try {
    if (onWire.length > 0) await queue.recordOnWire(onWire);
    return true;
  } catch (error) {
    onProblem('hand over requests on the wire', error);
    return false;
  }
}
