import { describe, expect, it } from 'vitest';
import { ReadProgress } from './read-progress.ts';

const FOR_EVER = Number.POSITIVE_INFINITY;

/** The progress of a lane that has read everything. */
function completeProgress(): ReadProgress {
  const progress = new ReadProgress();
  progress.begin();
  progress.recordFresh(7, true);
  progress.recordRetries(0, 50, true);
  progress.end();
  return progress;
}

describe('the read progress of a lane', () => {
  it('is complete after a read that reached the end', () => {
    expect(completeProgress().isComplete).toBe(true);
  });

  it('ends where the last read stopped, even if an earlier read reached further', () => {
    const progress = completeProgress();
    progress.begin();
    // 500 were replayed, all due at 100; a page is 200.
    progress.recordRetries(98, 100, false);
    progress.end();
    expect(progress.retryHorizon).toBe(100);
    progress.begin();
    progress.recordRetries(100, 100, false);
    progress.end();
    expect(progress.retryHorizon).toBe(100);
    progress.begin();
    progress.recordRetries(100, 100, true);
    progress.end();
    expect(progress.retryHorizon).toBe(FOR_EVER);
  });

  it('does not reach beyond a retry that was left in the store during the read', () => {
    const progress = new ReadProgress();
    progress.begin();
    progress.leaveRetryInStore(30);
    progress.recordRetries(0, 90, true);
    progress.end();
    expect(progress.retryHorizon).toBe(30);
  });

  it('does not advance past deliveries that were left below the start of the read', () => {
    const progress = completeProgress();
    progress.leaveRetryInStore(20);
    progress.begin();
    progress.recordRetries(60, 90, true);
    expect(progress.retryHorizon).toBe(20);
  });

  it('starts over after a reset, and marks a running read as stale', () => {
    const progress = completeProgress();
    progress.begin();
    progress.reset();
    expect(progress).toMatchObject({ hasMoreFresh: true, freshCursor: 0, retryHorizon: 0, isStale: true });
    progress.end();
    progress.begin();
    expect(progress.isStale).toBe(false);
  });

  it('keeps the ids of removed deliveries until the read ends', () => {
    const progress = new ReadProgress();
    const id = '01a1dedd-a7a9-7231-bae0-c2d8b4f60000' as never;
    progress.recordRemoved(id);
    expect(progress.wasRemoved(id)).toBe(false);
    progress.begin();
    progress.recordRemoved(id);
    expect(progress.wasRemoved(id)).toBe(true);
    progress.end();
    expect(progress.wasRemoved(id)).toBe(false);
  });
});
