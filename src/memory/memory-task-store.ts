import type { DeliveryStatus } from '../domain/delivery.ts';
import { eventIdOfDelivery, firstIdAt, type Uuid } from '../domain/ids.ts';
import type { ChunkResult, ClaimedTask, TaskStore } from '../ports/task-store.ts';
import { replayDelivery } from './memory-replayer.ts';
import type { MemoryStore } from './memory-store.ts';
import type { DeliveryFacts, TaskRow, TaskSelection } from './rows.ts';

export function createMemoryTaskStore(store: MemoryStore): TaskStore {
  /** Returns the claimed task if it still runs and this runner still has it. */
  const findClaimed = ({ id, runner }: ClaimedTask): TaskRow | undefined => {
    const task = store.tasks.get(id);
    return task?.runner === runner && task.state === 'running' ? task : undefined;
  };
  return {
    async claim(runner, silentMs) {
      const now = store.now();
      const tasks = [...store.tasks.values()];
      const lastTurns = new Map<string | null, number>();
      for (const { wasClaimed, selection, updatedAt } of tasks)
        if (wasClaimed && updatedAt <= now)
          lastTurns.set(selection.tenant, Math.max(updatedAt, lastTurns.get(selection.tenant) ?? 0));
      const lastTurnOf = ({ selection }: TaskRow): number => lastTurns.get(selection.tenant) ?? 0;
      const free = tasks
        .filter(({ state }) => state === 'queued' || state === 'running')
        .filter(
          (task) => task.runner === null || task.heartbeatAt! < now - silentMs || task.heartbeatAt! > now,
        )
        .sort((a, b) => lastTurnOf(a) - lastTurnOf(b) || a.updatedAt - b.updatedAt)[0];
      if (free === undefined) return null;
      Object.assign(free, { state: 'running', runner, wasClaimed: true, heartbeatAt: now, updatedAt: now });
      return { id: free.id, runner };
    },
    async runChunk(claimed, maxDeliveries, notBefore) {
      const task = findClaimed(claimed);
      return task === undefined
        ? { isRunning: false, isWaiting: false, endpointIds: [] }
        : runChunk(store, task, maxDeliveries, notBefore);
    },
    async release({ id, runner }) {
      const task = store.tasks.get(id);
      if (task?.runner === runner) Object.assign(task, { runner: null, updatedAt: store.now() });
    },
    async fail(claimed, reason) {
      const task = findClaimed(claimed);
      if (task !== undefined)
        Object.assign(task, { state: 'failed', error: reason, runner: null, updatedAt: store.now() });
    },
  };
}

function runChunk(
  store: MemoryStore,
  task: TaskRow,
  maxDeliveries: number,
  notBefore: number | undefined,
): ChunkResult {
  const chunk = selectDeliveries(store, task).slice(0, maxDeliveries);
  const moved = chunk.filter(({ id, endpointId }) =>
    task.kind === 'replay'
      ? replayDelivery(store, id, endpointId, notBefore)
      : discard(store, id, task.createdBy),
  );
  const now = store.now();
  task.cursor = chunk.at(-1)?.id ?? task.cursor;
  task.done += moved.length;
  task.failed += chunk.length - moved.length;
  task.heartbeatAt = now;
  task.updatedAt = now;
  if (chunk.length < maxDeliveries) task.state = 'done';
  const seen = task.done + task.failed;
  task.total = task.state === 'done' ? seen : Math.max(task.total, seen);
  return {
    isRunning: task.state === 'running',
    isWaiting: false,
    endpointIds: [...new Set(moved.map(({ endpointId }) => endpointId))],
  };
}

type Candidate = DeliveryFacts & { readonly status: DeliveryStatus; readonly reason: string | null };

/** Returns the deliveries that the task has not processed yet, in order of their ids. */
function selectDeliveries(store: MemoryStore, { selection, cursor, createdAt }: TaskRow): Candidate[] {
  return listCandidates(store, createdAt)
    .filter((candidate) => matches(candidate, selection) && (cursor === null || candidate.id > cursor))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Dead letters that died after the task was created are not part of it. */
function listCandidates(store: MemoryStore, createdAt: number): Candidate[] {
  const waiting = store.queue.all().map((row) => ({
    ...row,
    status: row.attempts > row.attemptsBeforeReplay ? ('retrying' as const) : ('pending' as const),
    reason: null,
  }));
  const dead = [...store.deadLetters.values()]
    .filter(({ replaying, deadAt }) => !replaying && deadAt <= createdAt)
    .map((letter) => ({ ...letter, status: 'dead' as const }));
  return [...waiting, ...dead, ...store.finished.values()];
}

function matches(delivery: Candidate, selection: TaskSelection): boolean {
  const { tenant, endpointId, statuses, type, reason, since, until, ids, eventId } = selection;
  const isWaiting = delivery.status === 'pending' || delivery.status === 'retrying';
  return (
    statuses.includes(delivery.status) &&
    (tenant === null || delivery.tenant === tenant) &&
    (endpointId === null || delivery.endpointId === endpointId) &&
    (type === null || delivery.eventType === type) &&
    (reason === null || isWaiting || delivery.reason === reason) &&
    (since === null || delivery.id >= firstIdAt(since)) &&
    (until === null || delivery.id < firstIdAt(until)) &&
    (ids === null || ids.includes(delivery.id)) &&
    (eventId == null || eventIdOfDelivery(delivery.id) === eventId)
  );
}

/** Returns false if the delivery is not a dead letter, or is being replayed. */
function discard(store: MemoryStore, id: Uuid, who: string): boolean {
  const letter = store.deadLetters.get(id);
  if (letter === undefined || letter.replaying) return false;
  store.deadLetters.delete(id);
  store.finished.set(id, { ...letter, status: 'discarded', reason: who, finishedAt: store.now() });
  return true;
}
