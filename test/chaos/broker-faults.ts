/** Faults of the Kafka brokers, with `POSTHORN_BACKBONE=kafka`. None of them excuses a request that is sent twice. */
import { setTimeout as delay } from 'node:timers/promises';
import type { TestBroker } from '../support/kafka/broker.ts';
import type { Brokers } from './brokers.ts';
import type { Fault, FaultContext } from './faults.ts';
import type { Random } from './random.ts';

type Log = (fault: Pick<Fault, 'what' | 'hits'>) => Fault;

const LONGEST_DOWN_MS = 8_000;
/** Longer than Posthorn waits for an answer, and than the other brokers wait for this one. */
const LONGEST_PAUSE_MS = 8_000;

/** Without the former leader, two brokers must have the partition. */
const MIN_TO_MOVE = 3;

export const brokerFaults = {
  async kill_broker({ system, random }: FaultContext, log: Log) {
    const { brokers, broker, name } = pick(system.brokers, random);
    const fault = log({ what: `kill -9 ${name}`, hits: 'none' });
    await broker.kill();
    await downFor(brokers, random);
    await broker.run();
    await brokers.untilInSync();
    fault.to = Date.now();
  },

  /** Others lead its partitions before it ends. */
  async stop_broker({ system, random }: FaultContext, log: Log) {
    const { brokers, broker, name } = pick(system.brokers, random);
    const fault = log({ what: `SIGTERM ${name}`, hits: 'none' });
    await broker.stop();
    await downFor(brokers, random);
    await broker.run();
    await brokers.untilInSync();
    fault.to = Date.now();
  },

  /** Its connections stay open. When it wakes up, it may still believe that it leads partitions. */
  async pause_broker({ system, random }: FaultContext, log: Log) {
    const { brokers, broker, name } = pick(system.brokers, random);
    const forMs = random.between(1_000, LONGEST_PAUSE_MS);
    const fault = log({ what: `SIGSTOP ${name} for ${Math.round(forMs)} ms`, hits: 'none' });
    broker.pause();
    await delay(forMs);
    broker.resume();
    await brokers.untilInSync();
    fault.to = Date.now();
  },

  /** The processes must write and read elsewhere, though no broker fails. */
  async move_partitions({ system }: FaultContext, log: Log) {
    const fault = log({ what: 'other brokers lead all partitions', hits: 'none' });
    await system.brokers!.movePartitions();
    fault.to = Date.now();
  },

  /** What the process has written is confirmed by the other brokers only, and it cannot ask any more. */
  async kill_broker_and_member({ system, random }: FaultContext, log: Log) {
    const { brokers, broker, name } = pick(system.brokers, random);
    const member = random.pick(system.members);
    const fault = log({ what: `kill -9 ${name} and ${member.name}`, hits: [member.name] });
    await Promise.all([broker.kill(), member.kill()]);
    await downFor(brokers, random);
    await broker.run();
    fault.to = Date.now();
    await member.bringBack();
    await brokers.untilInSync();
  },

  /** Nothing can be accepted or stored. */
  async kill_broker_without_postgres({ system, random }: FaultContext, log: Log) {
    const { brokers, broker, name } = pick(system.brokers, random);
    const fault = log({ what: `PostgreSQL: immediate shutdown, and kill -9 ${name}`, hits: 'all' });
    await Promise.all([system.postgres.restart('immediate'), broker.kill()]);
    await broker.run();
    fault.to = Date.now();
    await brokers.untilInSync();
  },
};

/** Returns true if the fault can happen with this many brokers. */
export function isPossibleWith(brokers: number, kind: string): boolean {
  return brokers >= (kind === 'move_partitions' ? MIN_TO_MOVE : Object.hasOwn(brokerFaults, kind) ? 1 : 0);
}

function pick(
  brokers: Brokers | null,
  random: Random,
): { brokers: Brokers; broker: TestBroker; name: string } {
  if (brokers === null) throw new Error('This run has no brokers.');
  const broker = random.pick(brokers.all);
  return { brokers, broker, name: `broker-${brokers.all.indexOf(broker) + 1}` };
}

/** A single broker starts again at once: it takes seconds anyway. */
async function downFor(brokers: Brokers, random: Random): Promise<void> {
  const forMs = random.between(0, LONGEST_DOWN_MS);
  if (brokers.all.length > 1) await delay(forMs);
}
