import { setImmediate as yieldToEventLoop } from 'node:timers/promises';

/** 500 lanes take about a millisecond. */
const ITEMS_PER_TURN = 500;

/**
 * Iterates over many items without blocking the process: yields to the event loop after every 500. The collection may
 * change meanwhile.
 */
export async function* inTurns<T>(items: Iterable<T>): AsyncGenerator<readonly T[], void> {
  let turn: T[] = [];
  for (const item of items) {
    turn.push(item);
    if (turn.length < ITEMS_PER_TURN) continue;
    yield turn;
    turn = [];
    await yieldToEventLoop();
  }
  if (turn.length > 0) yield turn;
}
