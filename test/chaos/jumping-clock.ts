/**
 * Loaded into a Posthorn before anything else: its wall clock can be set forward and back from outside, as an operator
 * or a careless time service would. The monotonic clock goes on as always.
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
