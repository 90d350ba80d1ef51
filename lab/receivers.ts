/** Builds the receivers of the lab from `fault-models.ts`. The same seed gives the same faults for every policy. */
import { Random } from '../test/simulation/virtual-time.ts';
import type { Answer } from '../test/simulation/world.ts';
import {
  type ClassModel,
  type ClassName,
  classModels,
  classNames,
  common,
  type HeavyTail,
  type Recurring,
} from './fault-models.ts';
import { hourOfDay, type Traffic } from './traffic.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const faultKinds = ['outages', 'badReleases', 'throttling', 'flapping', 'slowPeriods'] as const;
export type FaultKind = (typeof faultKinds)[number];

/** Times are milliseconds since the beginning of the run. */
interface Period {
  readonly from: number;
  readonly until: number;
  /** Between 0 and 1: chooses a variant of the fault. */
  readonly variant: number;
}

export class Receiver {
  readonly className: ClassName;
  readonly index: number;
  readonly #background: number;
  readonly #periods: ReadonlyMap<FaultKind, readonly Period[]>;

  constructor(className: ClassName, index: number, periods: ReadonlyMap<FaultKind, readonly Period[]>) {
    this.className = className;
    this.index = index;
    this.#background = classModels[className].background;
    this.#periods = periods;
  }

  /** The answer to a request at `now`. `identity` tells requests apart: an equal request gets an equal answer. */
  answer(now: number, identity: number): Answer {
    const chance = uniform(this.index, identity, 1);
    for (const kind of faultKinds) {
      const period = findPeriod(this.#periods.get(kind)!, now);
      if (period !== null) return this.#faultyAnswer(kind, period, now, identity, chance);
    }
    return chance < this.#background ? { status: 502, afterMs: 40 } : this.#usualAnswer(identity);
  }

  /** True if no fault is under way, apart from the failures in the background. */
  isHealthyAt(now: number): boolean {
    return faultKinds.every((kind) => findPeriod(this.#periods.get(kind)!, now) === null);
  }

  /** The shares of requests that succeed at `now`. */
  successAt(now: number, deadlineMs: number): number {
    const share = 1 - this.#background;
    for (const kind of faultKinds) {
      const period = findPeriod(this.#periods.get(kind)!, now);
      if (period === null) continue;
      if (kind === 'flapping') return this.#isUpWhileFlapping(period, now) ? share : 0;
      if (kind === 'slowPeriods') return share * shareWithin(deadlineMs, common.slowAnswer);
      return 0;
    }
    return share;
  }

  #faultyAnswer(kind: FaultKind, period: Period, now: number, identity: number, chance: number): Answer {
    switch (kind) {
      case 'outages':
        return outageOf(period);
      case 'badReleases': {
        const { rejections } = common;
        return { status: rejections[Math.floor(period.variant * rejections.length)]!, afterMs: 30 };
      }
      case 'throttling':
        return { status: 429, afterMs: 10, retryAfterMs: period.until - now };
      case 'flapping':
        if (!this.#isUpWhileFlapping(period, now)) return { status: 502, afterMs: 40 };
        return chance < this.#background ? { status: 502, afterMs: 40 } : this.#usualAnswer(identity);
      case 'slowPeriods':
        if (chance < this.#background) return { status: 502, afterMs: 40 };
        return { status: 200, afterMs: logNormal(common.slowAnswer, this.index, identity) };
    }
  }

  #usualAnswer(identity: number): Answer {
    return { status: 200, afterMs: logNormal(common.usualAnswer, this.index, identity) };
  }

  #isUpWhileFlapping({ from, variant }: Period, now: number): boolean {
    const { least, most } = common.flappingPhase;
    const phase = Math.floor((now - from) / ((least + (most - least) * variant) * 1000));
    return uniform(this.index, phase, 2) < 0.5;
  }
}

/** Per class: the factor on the time between faults. */
export type FaultScales = Readonly<Record<ClassName, number>>;

export type EndpointCounts = Readonly<Record<ClassName, number>>;

export interface ReceiverOptions {
  readonly seed: number;
  readonly lengthMs: number;
  readonly endpoints: EndpointCounts;
}

const CALIBRATION_STEPS = 16;
const DEADLINE_MS = 15_000;

/**
 * Finds the time between faults per class at which the share of first attempts that succeed is the one that the reference
 * system measured.
 */
export function calibrateFaults(options: ReceiverOptions, traffic: Traffic): FaultScales {
  const scales = { stable: 1, intermittent: 1, unreliable: 1 };
  for (const name of classNames) {
    let [low, high, smallestError] = [0.05, 20, Number.POSITIVE_INFINITY];
    for (let step = 0; step < CALIBRATION_STEPS; step += 1) {
      const scale = Math.sqrt(low * high);
      const success = firstAttemptSuccess(buildClass(name, options, scale), traffic);
      const error = success - classModels[name].reference.firstAttempt;
      if (Math.abs(error) < smallestError) [scales[name], smallestError] = [scale, Math.abs(error)];
      if (error < 0) low = scale;
      else high = scale;
    }
  }
  return scales;
}

export const buildReceivers = (options: ReceiverOptions, scales: FaultScales): Receiver[] =>
  classNames.flatMap((name) => buildClass(name, options, scales[name]));

/** The receivers of a class are numbered after those of the classes before it. */
function buildClass(
  name: ClassName,
  { seed, lengthMs, endpoints }: ReceiverOptions,
  scale: number,
): Receiver[] {
  const before = classNames
    .slice(0, classNames.indexOf(name))
    .reduce((sum, each) => sum + endpoints[each], 0);
  return Array.from({ length: endpoints[name] }, (_, number) => {
    const index = before + number;
    return new Receiver(name, index, drawPeriods(seed, index, classModels[name], lengthMs, scale));
  });
}

/** The share of first attempts that succeed if every delivery is sent when it is accepted. */
export function firstAttemptSuccess(receivers: readonly Receiver[], traffic: Traffic): number {
  let [sum, count] = [0, 0];
  for (const receiver of receivers)
    for (const at of traffic.sampleTimes(receiver.index)) {
      sum += receiver.successAt(at, DEADLINE_MS);
      count += 1;
    }
  return sum / count;
}

function drawPeriods(
  seed: number,
  index: number,
  model: ClassModel,
  lengthMs: number,
  scale: number,
): Map<FaultKind, readonly Period[]> {
  return new Map(
    faultKinds.map((kind, number) => {
      // A generator for each kind, so that a changed scale moves the faults and does not replace them.
      const random = new Random((seed * 1_000_003 + index * 31 + number) | 0);
      return [kind, drawKind(random, model[kind], lengthMs, scale)];
    }),
  );
}

function drawKind(
  random: Random,
  { everyHours, lastsMinutes }: Recurring,
  lengthMs: number,
  scale: number,
): Period[] {
  const periods: Period[] = [];
  const { dayToNight } = common;
  // Candidates come as often as during the day; at night most are dropped.
  const meanGapMs = (everyHours * HOUR_MS * scale * (1 + dayToNight)) / (2 * dayToNight);
  let at = -random.next() * meanGapMs;
  while (at < lengthMs) {
    at += -Math.log(1 - random.next()) * meanGapMs;
    const lastsMs = drawLength(random.next(), lastsMinutes) * MINUTE_MS;
    const [variant, luck] = [random.next(), random.next()];
    const hour = hourOfDay(at);
    const isDay = hour >= 8 && hour < 20;
    if (!isDay && luck > 1 / dayToNight) continue;
    periods.push({ from: at, until: at + lastsMs, variant });
    at += lastsMs;
  }
  return periods;
}

/** A truncated Pareto distribution. */
function drawLength(chance: number, { least, most, exponent }: HeavyTail): number {
  const tail = (least / most) ** exponent;
  return least / (1 - chance * (1 - tail)) ** (1 / exponent);
}

function findPeriod(periods: readonly Period[], now: number): Period | null {
  let [low, high] = [0, periods.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (periods[middle]!.from <= now) low = middle + 1;
    else high = middle;
  }
  const period = periods[low - 1];
  return period !== undefined && now < period.until ? period : null;
}

function outageOf({ variant }: Period): Answer {
  let rest = variant;
  for (const kind of common.outageKinds) {
    if (rest < kind.share) return kind;
    rest -= kind.share;
  }
  return common.outageKinds[0];
}

interface LogNormal {
  readonly medianMs: number;
  readonly sigma: number;
}

function logNormal({ medianMs, sigma }: LogNormal, index: number, identity: number): number {
  const radius = Math.sqrt(-2 * Math.log(1 - uniform(index, identity, 3)));
  const normal = radius * Math.cos(2 * Math.PI * uniform(index, identity, 4));
  return Math.ceil(medianMs * Math.exp(sigma * normal));
}

/** The share of log-normal answers within the deadline. */
function shareWithin(deadlineMs: number, { medianMs, sigma }: LogNormal): number {
  const z = Math.log(deadlineMs / medianMs) / sigma;
  // A logistic approximation of the normal distribution, good to 0.01.
  return 1 / (1 + Math.exp(-1.702 * z));
}

/** A number between 0 and 1 that depends on its arguments alone. */
export function uniform(a: number, b: number, salt: number): number {
  let h = Math.imul(a + 0x9e3779b9, 0x85ebca6b) ^ Math.imul(b | 0, 0xc2b2ae35) ^ Math.imul(salt, 0x27d4eb2f);
  h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d);
  h = Math.imul(h ^ (h >>> 12), 0x297a2d39);
  return ((h ^ (h >>> 15)) >>> 0) / 2 ** 32;
}
