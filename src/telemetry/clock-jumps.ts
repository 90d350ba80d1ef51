import type { ClockJump } from '../domain/clock.ts';
import type { Log } from './log.ts';

const MESSAGES: Readonly<Record<ClockJump['clock'], string>> = {
  machine: "this machine's clock jumped; Posthorn uses the database's clock",
  both: "the clocks of the database and of this machine differ; Posthorn uses the database's clock",
  database: "the database's clock jumped; Posthorn follows it when further answers confirm it",
};

/** Logs each jump of a clock once, with its size. */
export function clockJumpLogger(log: Log): (jump: ClockJump) => void {
  return ({ clock, jumpMs }) => log.warn({ clock, jump_ms: jumpMs }, MESSAGES[clock]);
}
