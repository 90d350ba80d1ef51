import { describe, expect, it } from 'vitest';
import { ReadProgress } from './read-progress.ts';

const FOR_EVER = Number.POSITIVE_INFINITY;

/** All that is due has been read. */
function complete(): ReadProgress {
  const read = new ReadProgress();
  read.begin();
  read.recordFresh(7, true);
  read.recordRetries(0, 50, true);
  read.end();
  return read;
}

describe('the read progress of a lane', () => {
  it('is complete after a read that reached the end', () => {
    expect(complete().isComplete).toBe(true);
  });

  it('ends where the last read stopped, even if an earlier read reached further', () => {
    const read = complete();
    read.begin();
    // 500 were replayed, all due at 100; a page is 200.
    read.recordRetries(98, 100, false);
    read.end();
    expect(read.retryHorizon).toBe(100);
    read.begin();
    read.recordRetries(100, 100, false);
    read.end();
    expect(read.retryHorizon).toBe(100);
    read.begin();
    read.recordRetries(100, 100, true);
    read.end();
    expect(read.retryHorizon).toBe(FOR_EVER);
  });

  it('does not reach beyond a retry that was left in the store during the read', () => {
    const read = new ReadProgress();
    read.begin();
    read.leaveRetryInStore(30);
    read.recordRetries(0, 90, true);
    read.end();
    expect(read.retryHorizon).toBe(30);
  });

  it('does not pass a gap that opened below the read', () => {
    const read = complete();
    read.leaveRetryInStore(20);
    read.begin();
    read.recordRetries(60, 90, true);
    expect(read.retryHorizon).toBe(20);
  });

  it('starts over after a reset, and marks a running read as stale', () => {
    const read = complete();
    read.begin();
    read.reset();
    expect(read).toMatchObject({ moreFresh: true, freshCursor: 0, retryHorizon: 0, isStale: true });
    read.end();
    read.begin();
    expect(read.isStale).toBe(false);
  });

  it('remembers removed deliveries until the read ends', () => {
    const read = new ReadProgress();
    const id = '01a1dedd-a7a9-7231-bae0-c2d8b4f60000' as never;
    read.recordRemoved(id);
    expect(read.wasRemoved(id)).toBe(false);
    read.begin();
    read.recordRemoved(id);
    expect(read.wasRemoved(id)).toBe(true);
    read.end();
    expect(read.wasRemoved(id)).toBe(false);
  });
});
