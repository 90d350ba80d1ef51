/** When events are published: more by day than by night, with storms. The same seed gives the same events for every policy. */
import { Random } from '../test/simulation/virtual-time.ts';
import { traffic as parameters } from './fault-models.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export const hourOfDay = (atMs: number): number => ((((atMs % DAY_MS) + DAY_MS) % DAY_MS) / HOUR_MS) % 24;

/** The rate at this time over the mean rate, without storms. */
const dayFactor = (atMs: number): number =>
  1 + (parameters.dayPeak - 1) * Math.sin(((hourOfDay(atMs) - 9) / 24) * 2 * Math.PI);

const SAMPLES_PER_ENDPOINT = 300;

/** Events that are published together. */
export interface TrafficGroup {
  readonly at: number;
  /** Indexes of the endpoints: one event for each. */
  readonly endpoints: readonly number[];
}

export interface TrafficOptions {
  readonly seed: number;
  readonly days: number;
  /** The mean number of deliveries per endpoint and hour, storms included. */
  readonly perEndpointHour: number;
}

export class Traffic {
  readonly #options: TrafficOptions;
  readonly #storms: readonly { readonly from: number; readonly until: number }[];
  readonly #stormShare: number;
  readonly #samples = new Map<number, readonly number[]>();

  constructor(options: TrafficOptions) {
    this.#options = options;
    const random = new Random(options.seed * 7_919);
    const { everyHours, minutes, factor } = parameters.storms;
    const storms: { from: number; until: number }[] = [];
    for (let at = 0; at < this.lengthMs; ) {
      at += -Math.log(1 - random.next()) * everyHours * HOUR_MS;
      storms.push({ from: at, until: at + minutes * 60_000 });
    }
    this.#storms = storms;
    this.#stormShare = ((factor - 1) * minutes) / 60 / everyHours;
  }

  get lengthMs(): number {
    return this.#options.days * DAY_MS;
  }

  /** All groups of events, in order. */
  *groups(endpoints: number): Generator<TrafficGroup, void> {
    const random = new Random(this.#options.seed * 104_729);
    const size = Math.min(parameters.group, endpoints);
    const base = (this.#options.perEndpointHour * endpoints) / size / HOUR_MS / (1 + this.#stormShare);
    const highest = base * parameters.dayPeak * parameters.storms.factor;
    let storm = 0;
    for (let at = 0; ; ) {
      // Outside of storms, candidates come at the rate of the busiest hour.
      while (storm < this.#storms.length && this.#storms[storm]!.until <= at) storm += 1;
      const { from } = this.#storms[storm] ?? { from: Number.POSITIVE_INFINITY };
      const isStorm = at >= from;
      const rate = isStorm ? highest : base * parameters.dayPeak;
      const next = at - Math.log(1 - random.next()) / rate;
      const boundary = isStorm ? this.#storms[storm]!.until : from;
      if (next > boundary) {
        at = boundary;
        continue;
      }
      at = next;
      if (at >= this.lengthMs) return;
      if (random.next() * parameters.dayPeak > dayFactor(at)) continue;
      yield { at, endpoints: chooseDistinct(random, endpoints, size) };
    }
  }

  /** Times at which an endpoint gets deliveries, to calibrate the receivers: a sample of fixed size. */
  sampleTimes(endpoint: number): readonly number[] {
    const known = this.#samples.get(endpoint);
    if (known !== undefined) return known;
    const random = new Random(this.#options.seed * 15_485_863 + endpoint);
    const times: number[] = [];
    while (times.length < SAMPLES_PER_ENDPOINT) {
      const at = random.next() * this.lengthMs;
      if (random.next() * parameters.dayPeak <= dayFactor(at)) times.push(at);
    }
    this.#samples.set(endpoint, times);
    return times;
  }
}

function chooseDistinct(random: Random, from: number, count: number): number[] {
  const chosen = new Set<number>();
  while (chosen.size < count) chosen.add(random.integer(0, from - 1));
  return [...chosen];
}
