import { describe, expect, it } from 'vitest';
import { ReadProgress } from './read-progress.ts';

const FOR_EVER = Number.POSITIVE_INFINITY;

/** All that is due has been read. */
function complete(): ReadProgress {
  const read = new ReadProgress();
  read.started();
  read.freshRead(7, true);
  read.retriesRead(0, 50, true);
  read.ended();
  return read;
}

describe('what of a lane has been read', () => {
  it('is all of it when a read came to the end', () => {
    expect(complete().complete).toBe(true);
  });

  it('ends where a read stopped that looked for something new: what else is new there has not been seen', () => {
    const read = complete();
    read.started();
    // 500 were replayed, all due at 100; a page is 200.
    read.retriesRead(98, 100, false);
    read.ended();
    expect(read.retryHorizon).toBe(100);
    read.started();
    read.retriesRead(100, 100, false);
    read.ended();
    expect(read.retryHorizon).toBe(100);
    read.started();
    read.retriesRead(100, 100, true);
    read.ended();
    expect(read.retryHorizon).toBe(FOR_EVER);
  });

  it('reaches no further than what was let go of while it was read', () => {
    const read = new ReadProgress();
    read.started();
    read.missedRetry(30);
    read.retriesRead(0, 90, true);
    read.ended();
    expect(read.retryHorizon).toBe(30);
  });

  it('is not known past a gap that opened below the read', () => {
    const read = complete();
    read.missedRetry(20);
    read.started();
    read.retriesRead(60, 90, true);
    expect(read.retryHorizon).toBe(20);
  });

  it('is nothing any more once everything was forgotten, also by a read under way', () => {
    const read = complete();
    read.started();
    read.forgotAll();
    expect(read).toMatchObject({ moreFresh: true, freshCursor: 0, retryHorizon: 0, isVoid: true });
    read.ended();
    read.started();
    expect(read.isVoid).toBe(false);
  });

  it('remembers who left while it was read, and only so long', () => {
    const read = new ReadProgress();
    const id = '01a1dedd-a7a9-7231-bae0-c2d8b4f60000' as never;
    read.left(id);
    expect(read.hasLeft(id)).toBe(false);
    read.started();
    read.left(id);
    expect(read.hasLeft(id)).toBe(true);
    read.ended();
    expect(read.hasLeft(id)).toBe(false);
  });
});
