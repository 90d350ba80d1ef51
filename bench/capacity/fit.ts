/** Turns measured samples into the costs of `src/cli/capacity`. */
import type { Costs, ProcessKind, UnitCosts } from '../../src/cli/capacity/unit-costs.ts';
import { processKinds } from '../../src/cli/capacity/unit-costs.ts';
import type { Sample } from './measure.ts';

/** The samples that tell one cause from another. Each differs from `base` in one thing. */
export interface Samples {
  /** Nothing happens. */
  readonly idle: Sample;
  /** Events without a delivery. */
  readonly accept: Sample;
  /** One delivery per event. */
  readonly base: Sample;
  /** Several deliveries per event. */
  readonly fanOut: Sample;
  /** A larger payload. */
  readonly payload: Sample;
  /** Every delivery is attempted several times. */
  readonly retry: Sample;
}

/** Idle costs per second are subtracted before anything is divided by events. */
export function fitCosts(samples: Samples, measure: (sample: Sample) => number): Costs {
  const perSecond = measure(samples.idle) / samples.idle.seconds;
  const busy = (sample: Sample): number => measure(sample) - perSecond * sample.seconds;
  const { accept, base, fanOut, payload, retry } = samples;
  const kilobytesOf = ({ events, load }: Sample): number => (events * load.bytes) / 1_000;
  // Per event, with the payload of `base`.
  const perEvent = (sample: Sample): number => busy(sample) / sample.events;
  const delivery = (perEvent(fanOut) - perEvent(base)) / (fanOut.load.fanOut - base.load.fanOut);
  const kilobyte =
    (perEvent(payload) - perEvent(base)) /
    (kilobytesOf(payload) / payload.events - kilobytesOf(base) / base.events);
  const event = perEvent(accept) - (kilobyte * accept.load.bytes) / 1_000;
  const firstAttempts = retry.events * perEvent(base);
  return {
    event: atLeastZero(event),
    delivery: atLeastZero(delivery),
    retry: atLeastZero((busy(retry) - firstAttempts) / retry.retries),
    kilobyte: atLeastZero(kilobyte),
  };
}

const atLeastZero = (value: number): number => Math.max(0, Number(value.toPrecision(3)));

export function fitUnitCosts(
  samples: Samples,
  others: Pick<UnitCosts, 'processMegabytes' | 'endpointBytes' | 'waitingBytes' | 'measuredOn'>,
): UnitCosts {
  const cpu = Object.fromEntries(
    processKinds.map((kind) => [kind, fitCosts(samples, ({ cpu }) => cpu[kind] * 1e6)]),
  ) as Record<ProcessKind, Costs>;
  const idle = (kind: ProcessKind): number => samples.idle.cpu[kind] / samples.idle.seconds;
  return {
    cpu,
    idleCores: {
      api: atLeastZero(idle('api')),
      worker: atLeastZero(idle('worker')),
      // PostgreSQL answers the heartbeats of two processes.
      postgres: atLeastZero(idle('postgres') / 2),
    },
    walBytes: fitCosts(samples, ({ walBytes }) => walBytes),
    diskBytes: fitCosts(samples, ({ diskBytes }) => diskBytes),
    connections: Math.ceil(samples.base.connections / 2),
    ...others,
  };
}
