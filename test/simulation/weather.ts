/** How the network and the store behave at the moment. */
import type { Uuid } from '../../src/domain/ids.ts';
import type { Fault } from '../../src/memory/faults.ts';
import type { AppendFault } from './simulated-kafka.ts';
import type { Random } from './virtual-time.ts';

export interface Weather {
  /** Milliseconds that a call to the store takes. */
  latencyMs: () => number;
  /** Milliseconds that each row takes that a call writes. */
  rowMs: number;
  /** The endpoint whose rows another transaction has locked. Null: none. */
  lockedEndpoint: Uuid | null;
  /** Milliseconds from the assignment of acceptance numbers until their commit becomes visible. */
  commitMs: () => number;
  fault: (operation: string) => Fault;
  /** True: a notification is lost on its way to one process. */
  losesMessage: () => boolean;
  /** Milliseconds of a hand-over between two processes of a node. Infinity: it is lost. */
  handOverMs: () => number;
  /** Milliseconds until the connection to a receiver is open. */
  connectMs: () => number;
  /** True: the broker of the accept log answers nothing. */
  brokerIsAway: () => boolean;
  /** Milliseconds that a request to the broker takes. */
  brokerMs: () => number;
  /** What happens to a request that writes to the accept log. */
  appendFault: () => AppendFault;
  /** Share of conversions that fail. */
  conversionFailureRate: number;
}

export const calmWeather = (random: Random): Weather => ({
  latencyMs: () => random.between(0.5, 4),
  rowMs: 0,
  lockedEndpoint: null,
  commitMs: () => 0,
  fault: () => 'none',
  losesMessage: () => false,
  handOverMs: () => random.between(0, 1),
  connectMs: () => 0,
  brokerIsAway: () => false,
  brokerMs: () => random.between(0.5, 4),
  appendFault: () => 'none',
  conversionFailureRate: 0,
});
