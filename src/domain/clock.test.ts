import { describe, expect, test } from 'vitest';
import { type ClockJump, DatabaseClock, STEADY_AFTER_MS } from './clock.ts';
import { newId, timeOfId } from './ids.ts';

const START = 1_800_000_000_000;
const DAY_MS = 86_400_000;

/** A process that hears from the database every 300 ms. The clocks of both machines can be set. */
function createClock({ machineAheadMs = 0 } = {}) {
  let elapsedMs = 0;
  const ahead = { machine: machineAheadMs, database: 0 };
  const jumps: ClockJump[] = [];
  const base = {
    now: () => Math.floor(START + elapsedMs + ahead.machine),
    monotonic: () => 5_000.25 + elapsedMs,
    after: () => () => {},
  };
  const clock = new DatabaseClock(base, (jump) => jumps.push(jump));
  const hear = (roundTripMs = 0) =>
    clock.correct(START + elapsedMs + ahead.database - roundTripMs / 2, roundTripMs);
  return {
    clock,
    ahead,
    jumps,
    hear,
    pass: (ms: number): void => {
      elapsedMs += ms;
    },
    /** Lets time pass with a renewal every 300 ms. */
    run: (ms: number): void => {
      for (let passed = 0; passed < ms; passed += 300) {
        elapsedMs += 300;
        hear();
      }
    },
    /** How far this clock is ahead of the true time. */
    errorMs: () => clock.now() - (START + elapsedMs),
  };
}

describe("the estimate of the database's clock", () => {
  test("is the machine's clock until the database has answered, and then the database's", () => {
    const { errorMs, hear, pass, clock } = createClock({ machineAheadMs: 600_000 });
    expect(errorMs()).toBe(600_000);
    hear();
    expect(Math.abs(errorMs())).toBeLessThanOrEqual(1);
    pass(60_000);
    expect(Math.abs(errorMs())).toBeLessThanOrEqual(1);
    expect(Number.isInteger(clock.now())).toBe(true);
  });

  test('ignores the noise of the network, and slow answers', () => {
    const { clock, errorMs, hear } = createClock();
    hear();
    clock.correct(START + 90);
    clock.correct(START + 1_000, 400);
    expect(Math.abs(errorMs())).toBeLessThanOrEqual(1);
  });

  test('follows a small correction immediately', () => {
    const { ahead, errorMs, run, jumps } = createClock();
    run(300);
    ahead.database = -1_500;
    run(300);
    expect(Math.abs(errorMs() + 1_500)).toBeLessThanOrEqual(1);
    expect(jumps).toEqual([]);
  });

  test.each([40, -40])(
    "does not follow a jump of the machine's clock by %d days, and reports it once",
    (days) => {
      const { ahead, errorMs, run, jumps } = createClock();
      run(3_000);
      ahead.machine = days * DAY_MS;
      expect(Math.abs(errorMs())).toBeLessThanOrEqual(1);
      run(60_000);
      expect(Math.abs(errorMs())).toBeLessThanOrEqual(1);
      expect(jumps).toEqual([{ clock: 'machine', jumpMs: days * DAY_MS }]);
      ahead.machine = 0;
      run(60_000);
      expect(jumps.slice(1)).toEqual([{ clock: 'machine', jumpMs: -days * DAY_MS }]);
    },
  );

  test.each([40, -40])(
    "ignores the database's clock if it is wrong by %d days for only 11 seconds",
    (days) => {
      const { ahead, errorMs, run, jumps } = createClock();
      run(3_000);
      ahead.database = days * DAY_MS;
      run(11_000);
      expect(Math.abs(errorMs())).toBeLessThanOrEqual(1);
      ahead.database = 0;
      run(60_000);
      expect(Math.abs(errorMs())).toBeLessThanOrEqual(1);
      expect(jumps).toEqual([{ clock: 'database', jumpMs: days * DAY_MS }]);
    },
  );

  test.each([40, -40])(
    "follows the database's clock by %d days when renewals confirm it for 15 seconds",
    (days) => {
      const { ahead, errorMs, run } = createClock();
      run(3_000);
      ahead.database = days * DAY_MS;
      run(16_000);
      expect(Math.abs(errorMs() - days * DAY_MS)).toBeLessThanOrEqual(1);
    },
  );

  test('follows both clocks within two seconds after the machine was suspended', () => {
    const { ahead, errorMs, run } = createClock();
    run(3_000);
    ahead.machine = 7_200_000;
    ahead.database = 7_200_000;
    run(300);
    expect(Math.abs(errorMs())).toBeLessThanOrEqual(1);
    run(1_700);
    expect(Math.abs(errorMs() - 7_200_000)).toBeLessThanOrEqual(1);
  });
});

describe('the clock is steady', () => {
  test.each([
    [40, 300],
    [-40, 300],
    [40, 20_000],
    [-40, 20_000],
  ])("until the database's clock jumps by %d days for %d ms, and again an hour later", (days, forMs) => {
    const { ahead, clock, run } = createClock();
    run(3_000);
    expect(clock.isSteady).toBe(true);
    ahead.database = days * DAY_MS;
    run(forMs);
    expect(clock.isSteady).toBe(false);
    ahead.database = 0;
    run(STEADY_AFTER_MS - 30_000);
    expect(clock.isSteady).toBe(false);
    run(60_000);
    expect(clock.isSteady).toBe(true);
  });

  test("whatever the machine's clock does later", () => {
    const { ahead, clock, run } = createClock();
    run(3_000);
    ahead.machine = 40 * DAY_MS;
    run(3_000);
    expect(clock.isSteady).toBe(true);
  });

  test('unless the clocks of the two machines differ by more than an hour at the start', () => {
    const { clock, jumps, run } = createClock({ machineAheadMs: -40 * DAY_MS });
    run(300);
    expect(clock.isSteady).toBe(false);
    expect(jumps).toEqual([{ clock: 'both', jumpMs: 40 * DAY_MS }]);
    run(STEADY_AFTER_MS);
    expect(clock.isSteady).toBe(true);
  });
});

test('a step is announced when the clock follows it, with its size', () => {
  const { ahead, clock, run } = createClock();
  const steps: number[] = [];
  clock.onStepped((stepMs) => steps.push(stepMs));
  run(3_000);
  ahead.database = 40 * DAY_MS;
  run(11_000);
  ahead.database = 0;
  run(3_000);
  expect(steps).toEqual([]);
  ahead.database = -40 * DAY_MS;
  run(16_000);
  ahead.database = 0;
  run(16_000);
  expect(steps.map((stepMs) => Math.round(stepMs / DAY_MS))).toEqual([-40, 40]);
});

test('ids recover when the clock was 40 days ahead before the database first answered', () => {
  const { clock, hear, run, ahead } = createClock({ machineAheadMs: 40 * DAY_MS });
  newId(clock.now());
  hear();
  expect(timeOfId(newId(clock.now()))).toBe(clock.now());
  ahead.machine = 80 * DAY_MS;
  run(300);
  expect(timeOfId(newId(clock.now()))).toBe(clock.now());
});

test('after a step back that both clocks made, keeps what is stored for as long as if they were wrong', () => {
  const { clock, ahead, hear, run, pass, errorMs } = createClock();
  hear();
  run(3_000);
  ahead.machine = -40 * DAY_MS;
  ahead.database = -40 * DAY_MS;
  run(3_000);
  expect(errorMs()).toBe(-40 * DAY_MS);
  const trueNow = (): number => clock.now() + 40 * DAY_MS;
  expect(clock.latestNow()).toBe(trueNow());
  // Once the clock has been steady for an hour, it is believed.
  pass(STEADY_AFTER_MS);
  expect(clock.latestNow()).toBe(clock.now());
  // A small step later on does not bring the old time back.
  ahead.machine -= 10_000;
  ahead.database -= 10_000;
  run(3_000);
  expect(clock.latestNow()).toBe(clock.now() + 10_000);
});
