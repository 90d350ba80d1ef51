/** `posthorn archive restore`: asks a running server to restore a day or an event, and waits until that is done. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../config/index.ts';
import type { Arguments } from '../arguments.ts';
import { print, printError } from '../print.ts';
import { ServerApi } from '../server-api.ts';
import { UsageError } from '../usage-error.ts';

interface Task {
  readonly id: string;
  readonly state: string;
  readonly done: number;
  readonly error: string | null;
}

const POLL_MS = 500;

export async function restoreFromArchive(config: Config, { options }: Arguments): Promise<number> {
  const { day, event } = options;
  if ((day === undefined) === (event === undefined))
    throw new UsageError('Say what to restore: --day 2026-11-15, or --event evt_….');
  const body = day === undefined ? { event_id: event } : { day };
  const server = await ServerApi.of(config);
  let answer = await server.call('POST', '/v1/archive/restore', body);
  for (;;) {
    if (!answer.ok) {
      const problem = (await answer.json().catch(() => null)) as { readonly detail?: string } | null;
      printError(
        `${day ?? event} was not restored (${answer.status}): ${problem?.detail ?? answer.statusText}`,
      );
      return 1;
    }
    const task = (await answer.json()) as Task;
    if (task.state === 'done') {
      print(`Restored ${task.done} rows of ${day ?? event}. They stay for ${config.restoreDays} days.`);
      return 0;
    }
    if (task.state === 'failed' || task.state === 'cancelled') {
      printError(`${day ?? event} was not restored: ${task.error ?? task.state}`);
      return 1;
    }
    await sleep(POLL_MS);
    answer = await server.call('GET', `/v1/tasks/${task.id}`);
  }
}
