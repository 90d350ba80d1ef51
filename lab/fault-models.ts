/**
 * How receivers fail, per class of endpoint: every parameter of the lab's fault model, with its reason.
 *
 * The classes and their figures are those of a production system that measured 500 endpoints for 30 days at 50,000
 * deliveries an hour: the share of first attempts that succeed, and the share of deliveries that succeed in the end with
 * eight attempts over 14 hours (0, 30 s, 2 min, 10 min, 30 min, 1 h, 4 h, 8 h). The lab matches the first figure by
 * construction: `receivers.ts` scales the time between faults until it does. It matches the second one by choice of the
 * longest outages below, so the model has the right share of failures that retries can repair.
 */

/** A length in minutes from a Pareto distribution between `least` and `most`. A smaller exponent: more long ones. */
export interface HeavyTail {
  readonly least: number;
  readonly most: number;
  readonly exponent: number;
}

/** A kind of fault that comes and goes. `everyHours` is the mean time between two of them before scaling. */
export interface Recurring {
  readonly everyHours: number;
  readonly lastsMinutes: HeavyTail;
}

export interface ClassModel {
  /** Of the 500 endpoints of the reference system. */
  readonly endpoints: number;
  /** What the reference system measured. */
  readonly reference: { readonly firstAttempt: number; readonly final: number };
  /** The share of requests that fail by themselves while the receiver works: restarts, lost connections, deadlocks. */
  readonly background: number;
  /** Every request fails: refused, 503, or no answer until the deadline. */
  readonly outages: Recurring;
  /** A release with a bug: every request is answered 4xx. Only a retry after the fix, or a replay, helps. */
  readonly badReleases: Recurring;
  /** Answers take seconds, and some miss the deadline. */
  readonly slowPeriods: Recurring;
  /** Works and fails in turn, a phase of about a minute each: a crash loop, or one bad instance behind a load balancer. */
  readonly flapping: Recurring;
  /** Answers 429 with the time when requests are welcome again. */
  readonly throttling: Recurring;
}

export const classNames = ['stable', 'intermittent', 'unreliable'] as const;
export type ClassName = (typeof classNames)[number];

export const classModels: Readonly<Record<ClassName, ClassModel>> = {
  /** A service with an on-call team: mostly single failures and deployments, few outages beyond an hour. */
  stable: {
    endpoints: 350,
    reference: { firstAttempt: 0.972, final: 0.998 },
    background: 0.009,
    outages: { everyHours: 35, lastsMinutes: { least: 2, most: 24 * 60, exponent: 0.9 } },
    badReleases: { everyHours: 230, lastsMinutes: { least: 5, most: 240, exponent: 1 } },
    slowPeriods: { everyHours: 28, lastsMinutes: { least: 5, most: 120, exponent: 1.2 } },
    flapping: { everyHours: 58, lastsMinutes: { least: 5, most: 60, exponent: 1.2 } },
    throttling: { everyHours: 14, lastsMinutes: { least: 1, most: 15, exponent: 1.2 } },
  },
  /** A small company's server: outages that last until somebody is back at work, crash loops, tight rate limits. */
  intermittent: {
    endpoints: 100,
    reference: { firstAttempt: 0.724, final: 0.913 },
    background: 0.03,
    outages: { everyHours: 10, lastsMinutes: { least: 5, most: 4 * 24 * 60, exponent: 0.58 } },
    badReleases: { everyHours: 65, lastsMinutes: { least: 10, most: 12 * 60, exponent: 0.9 } },
    slowPeriods: { everyHours: 10, lastsMinutes: { least: 10, most: 8 * 60, exponent: 1 } },
    flapping: { everyHours: 12, lastsMinutes: { least: 10, most: 6 * 60, exponent: 1 } },
    throttling: { everyHours: 5, lastsMinutes: { least: 2, most: 60, exponent: 1 } },
  },
  /** A test server, or one that nobody looks after: outages of days. */
  unreliable: {
    endpoints: 50,
    reference: { firstAttempt: 0.418, final: 0.652 },
    background: 0.06,
    outages: { everyHours: 9, lastsMinutes: { least: 10, most: 9 * 24 * 60, exponent: 0.4 } },
    badReleases: { everyHours: 50, lastsMinutes: { least: 20, most: 24 * 60, exponent: 0.8 } },
    slowPeriods: { everyHours: 7, lastsMinutes: { least: 10, most: 12 * 60, exponent: 1 } },
    flapping: { everyHours: 7, lastsMinutes: { least: 10, most: 12 * 60, exponent: 1 } },
    throttling: { everyHours: 4, lastsMinutes: { least: 2, most: 60, exponent: 1 } },
  },
};

/** What is the same for every class. */
export const common = {
  /** Milliseconds of an answer while the receiver works, log-normal. Most receivers only store the event. */
  usualAnswer: { medianMs: 120, sigma: 0.7 },
  /** In a slow period. About one answer in four takes longer than the default deadline of 15 seconds. */
  slowAnswer: { medianMs: 9_000, sigma: 0.75 },
  /** How an outage looks: a stopped process refuses at once, an overloaded one keeps the connection open. */
  outageKinds: [
    { share: 0.5, status: 503, afterMs: 60 },
    { share: 0.2, status: 503, afterMs: 60, retryAfterMs: 120_000 },
    { share: 0.3, status: null, afterMs: 0 },
  ],
  /** What a bug in a release answers. */
  rejections: [400, 401, 404, 422],
  /** Lengths of the phases of flapping, in seconds. */
  flappingPhase: { least: 20, most: 180 },
  /** Faults begin more often during the day, when people deploy: the ratio of 08:00–20:00 to the night. */
  dayToNight: 3,
} as const;

/** 50,000 deliveries an hour to 500 endpoints, as the reference system had. */
export const traffic = {
  deliveriesPerHour: 50_000,
  /** The busiest hour of the day over the mean: a sine with its peak at 15:00. */
  dayPeak: 1.6,
  /** Storms, as from an import or a batch job: the mean time between them, their length and their rate over the usual one. */
  storms: { everyHours: 12, minutes: 5, factor: 10 },
  /** This many events are published together, each for another endpoint, as by a batch. Their commit is shared. */
  group: 10,
} as const;
