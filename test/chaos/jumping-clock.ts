/**
 * Loaded into Posthorn first: lets the test move its wall clock forward and back, as an operator or a time service
 * could. The monotonic clock is not affected.
 */
import { readFileSync } from 'node:fs';

const RealDate = Date;
const file = process.env.CHAOS_CLOCK_FILE!;
let offsetMs = 0;

process.on('SIGUSR2', () => {
  offsetMs = Number(readFileSync(file, 'utf8'));
});

class JumpingDate extends RealDate {
  constructor(...given: [] | [number]) {
    if (given.length === 0) super(RealDate.now() + offsetMs);
    else super(...given);
  }

  static override now(): number {
    return RealDate.now() + offsetMs;
  }
}
globalThis.Date = JumpingDate as DateConstructor;
