/** The faults of a run, one after another. The seed chooses them, and each is logged with its times. */
import { setTimeout as delay } from 'node:timers/promises';
import { brokerFaults } from './broker-faults.ts';
import { databaseFaults } from './database-faults.ts';
import type { ShopFaultKind } from './four-ways/faults.ts';
import type { Random } from './random.ts';
import { type Behaviour, badBehaviours, type Receivers } from './receivers.ts';
import { type Member, type System, TIMES } from './system.ts';
import { until } from './until.ts';

export interface Fault {
  readonly kind: FaultKind;
  readonly what: string;
  /** The processes whose requests may be sent twice because of the fault. */
  readonly hits: readonly string[] | 'all' | 'none';
  /** The process whose clock was wrong during the fault. */
  readonly clockOf?: string;
  readonly from: number;
  /** When the cause ended. Recovery takes longer. */
  to: number;
  recoveredAt: number;
}

export interface FaultContext {
  readonly system: System;
  readonly random: Random;
  readonly complaints: string[];
}

type Inflict = (
  context: FaultContext,
  log: (fault: Pick<Fault, 'what' | 'hits' | 'clockOf'>) => Fault,
) => Promise<void>;

const cabled = (members: readonly Member[]): Member[] => members.filter(({ cable }) => cable !== null);

async function kill(member: Member, fault: Fault, random: Random): Promise<void> {
  await member.kill();
  fault.to = Date.now();
  await delay(random.between(50, 700));
  await member.bringBack();
}

const LOCKS = {
  'all waiting deliveries': 'select from posthorn.queue for update',
  'all endpoints': 'select from posthorn.endpoints for update',
  'the health of all endpoints': 'select from posthorn.endpoint_health for update',
  'all idempotency keys': 'select from posthorn.idempotency_keys for update',
  'the version of the endpoints': 'select from posthorn.subscription_version for update',
} as const;
const LOCKED_ROWS = Object.keys(LOCKS) as (keyof typeof LOCKS)[];

export const faults = {
  async kill_worker({ system, random }, log) {
    const member = random.pick(system.workers);
    const fault = log({ what: `kill -9 ${member.name}`, hits: [member.name] });
    await kill(member, fault, random);
  },

  async kill_api({ system, random }, log) {
    const member = random.pick(system.apis);
    const fault = log({ what: `kill -9 ${member.name}`, hits: 'none' });
    await kill(member, fault, random);
  },

  /** Long enough for other workers to take over its shards. */
  async pause_worker({ system, random }, log) {
    const member = random.pick(system.workers);
    const forMs = TIMES.deadAfterMs + random.between(400, 1500);
    const fault = log({ what: `SIGSTOP ${member.name} for ${Math.round(forMs)} ms`, hits: [member.name] });
    member.pause();
    await delay(forMs);
    member.resume();
    fault.to = Date.now();
    await member.ready();
  },

  /** Longer than its lease, but too short for a take-over. */
  async blink_worker({ system, random }, log) {
    const member = random.pick(system.workers);
    const forMs = random.between(TIMES.proofMs + 50, TIMES.deadAfterMs / 2);
    const fault = log({ what: `SIGSTOP ${member.name} for ${Math.round(forMs)} ms`, hits: 'none' });
    member.pause();
    await delay(forMs);
    member.resume();
    fault.to = Date.now();
    await member.ready();
  },

  async stop_gracefully({ system, random, complaints }, log) {
    const member = random.chance(0.7) ? random.pick(system.workers) : random.pick(system.apis);
    const fault = log({ what: `SIGTERM ${member.name}`, hits: 'none' });
    const how = await member.stop();
    fault.to = Date.now();
    if (how !== 'exit code 0')
      complaints.push(`${member.name} ended with ${how} after SIGTERM (${fault.to - fault.from} ms)`);
    await delay(random.between(50, 500));
    await member.bringBack();
  },

  async restart_postgres_fast({ system }, log) {
    const fault = log({ what: 'PostgreSQL: fast shutdown, and started again', hits: 'all' });
    await system.postgres.restart('fast');
    fault.to = Date.now();
  },

  async restart_postgres_immediate({ system }, log) {
    const fault = log({ what: 'PostgreSQL: immediate shutdown, and started again', hits: 'all' });
    await system.postgres.restart('immediate');
    fault.to = Date.now();
  },

  async kill_worker_without_postgres({ system, random }, log) {
    const member = random.pick(system.workers);
    const fault = log({ what: `PostgreSQL: immediate shutdown, and kill -9 ${member.name}`, hits: 'all' });
    const back = system.postgres.restart('immediate');
    await delay(random.between(0, 400));
    await member.kill();
    await back;
    fault.to = Date.now();
    await member.bringBack();
  },

  async terminate_backends({ system, random }, log) {
    const backends = await system.postgres.query<{ pid: number; application_name: string }>(
      `select pid, application_name from pg_stat_activity where application_name like 'posthorn %' order by pid`,
    );
    const purposes = [...new Set(backends.map(({ application_name }) => application_name))].sort();
    const purpose = random.chance(0.5) ? random.pick(purposes) : null;
    const victims = backends.filter(({ application_name }) =>
      purpose === null ? random.chance(0.4) : application_name === purpose,
    );
    const of = purpose ?? 'all kinds';
    const fault = log({ what: `pg_terminate_backend on ${victims.length} connections (${of})`, hits: 'all' });
    await system.postgres.query('select pg_terminate_backend(pid) from unnest($1::int[]) as pid', [
      victims.map(({ pid }) => pid),
    ]);
    fault.to = Date.now();
  },

  async cut_connections({ system, random }, log) {
    const member = random.pick(cabled(system.members));
    log({ what: `cut every connection of ${member.name} to PostgreSQL`, hits: [member.name] });
    member.cable!.cut();
  },

  async pull_the_cable({ system, random }, log) {
    const member = random.pick(cabled(system.members));
    const forMs = random.between(300, TIMES.deadAfterMs + 1500);
    const what = `no connection from ${member.name} to PostgreSQL for ${Math.round(forMs)} ms`;
    const fault = log({ what, hits: [member.name] });
    member.cable!.pull();
    await delay(forMs);
    member.cable!.mend();
    fault.to = Date.now();
  },

  /** The worst kind: neither side gets an error. Afterwards the held-back data arrives, or the connections break. */
  async silence_the_cable({ system, random }, log) {
    const member = random.pick(cabled(system.members));
    const forMs = random.between(500, TIMES.deadAfterMs + 1500);
    const late = random.chance(0.5);
    const then = late ? 'then everything arrives' : 'then cut';
    const what = `silence between ${member.name} and PostgreSQL for ${Math.round(forMs)} ms, ${then}`;
    const fault = log({ what, hits: [member.name] });
    member.cable!.silence();
    await delay(forMs);
    if (!late) member.cable!.cut();
    member.cable!.mend();
    fault.to = Date.now();
  },

  /** Another transaction keeps rows locked that accepting, sending and recording need. */
  async lock_rows({ system, random }, log) {
    const rows = random.pick(LOCKED_ROWS);
    const forMs = random.between(500, 7_000);
    const fault = log({ what: `${rows} locked for ${Math.round(forMs)} ms`, hits: 'all' });
    const unlock = await system.postgres.lock(LOCKS[rows]);
    await delay(forMs);
    await unlock();
    fault.to = Date.now();
  },

  /** An API server stops between two statements of a transaction that holds the lock which every change needs. */
  async stop_in_transaction({ system, random, complaints }, log) {
    const member = random.pick(system.apis);
    const fault = log({ what: `SIGSTOP ${member.name} inside a transaction`, hits: 'none' });
    const unlock = await system.postgres.lock(LOCKS['the version of the endpoints']);
    const change = member.createEndpoint(system.key, { tenant: 'stopped', url: 'http://127.0.0.1:9/' });
    await system.postgres.untilWaiting('posthorn api');
    member.pause();
    await unlock();
    // The stopped process holds the lock until PostgreSQL ends its transaction.
    const other = system.apis.find(({ name }) => name !== member.name)!;
    const isChanged = await until(
      'another server can change endpoints',
      () => other.createEndpoint(system.key, { tenant: 'other', url: 'http://127.0.0.1:9/' }),
      15_000,
    ).then(
      () => true,
      () => false,
    );
    if (!isChanged) complaints.push(`${other.name} could change nothing while ${member.name} was stopped`);
    member.resume();
    fault.to = Date.now();
    await change;
    await member.ready();
  },

  /** As after a statement timeout: SQLSTATE 57014 for whatever runs. */
  async cancel_statements({ system, random }, log) {
    const forMs = random.between(300, 1_500);
    const fault = log({ what: `every statement is cancelled for ${Math.round(forMs)} ms`, hits: 'all' });
    const endAt = Date.now() + forMs;
    while (Date.now() < endAt) {
      await system.postgres.query(
        `select pg_cancel_backend(pid) from pg_stat_activity where application_name like 'posthorn %' and state = 'active'`,
      );
      await delay(5);
    }
    fault.to = Date.now();
  },

  /** Without workers, an API server must not call itself ready. */
  async kill_all_workers({ system, complaints }, log) {
    const fault = log({ what: 'kill -9 all workers', hits: 'all' });
    await Promise.all(system.workers.map((member) => member.kill()));
    for (const api of system.apis) {
      await until(`${api.name} is not ready`, async () => !(await api.isReadyNow()), 15_000).catch(() =>
        complaints.push(`${api.name} was ready without any worker`),
      );
    }
    fault.to = Date.now();
    for (const member of system.workers) await member.bringBack();
  },

  /** The clock jumps by some seconds or by 40 days, and back. */
  async jump_the_clock({ system, random }, log) {
    const member = random.pick(system.members);
    const sizeMs = random.chance(0.5) ? 40 * 86_400_000 : Math.round(random.between(1000, 8000));
    const aheadMs = sizeMs * (random.chance(0.5) ? 1 : -1);
    const fault = log({
      what: `the clock of ${member.name} jumps by ${aheadMs} ms, and back`,
      hits: 'none',
      clockOf: member.name,
    });
    await member.setClock(aheadMs);
    await delay(random.between(300, 1500));
    await member.setClock(0);
    fault.to = Date.now();
  },

  ...databaseFaults,
  ...brokerFaults,
} satisfies Record<string, Inflict>;

export type FaultKind = keyof typeof faults | ShopFaultKind | 'receivers_flap';
export const faultKinds = Object.keys(faults) as (keyof typeof faults)[];

/** All kinds in turn, in a new order each round. */
export function* planOf<Kind>(random: Random, kinds: readonly Kind[]): Generator<Kind, never> {
  for (;;) yield* random.shuffled(kinds);
}

export async function inflict(
  kind: keyof typeof faults,
  context: FaultContext,
  faultLog: Fault[],
): Promise<void> {
  let fault: Fault | undefined;
  if (kind.includes('postgres')) await context.system.postgres.restartable();
  const run: Inflict = faults[kind];
  await run(context, (given) => {
    const now = Date.now();
    fault = { ...given, kind, from: now, to: now, recoveredAt: now };
    faultLog.push(fault);
    return fault;
  });
  // Recovered: every process runs and every worker has a valid lease.
  for (const member of context.system.members) await member.ready(30_000);
  fault!.recoveredAt = Date.now();
}

/** Makes random receivers misbehave for a while, during the whole run. */
export class Flapping {
  readonly #receivers: Receivers;
  readonly #random: Random;
  readonly #endpoints: readonly string[];
  readonly #log: Fault[];
  #stopped = false;
  #running: Promise<void> | null = null;

  constructor(receivers: Receivers, random: Random, endpoints: readonly string[], log: Fault[]) {
    this.#receivers = receivers;
    this.#random = random;
    this.#endpoints = endpoints;
    this.#log = log;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Stops, and lets all receivers behave well again. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
    this.#receivers.setBehaviours(Object.fromEntries(this.#endpoints.map((name) => [name, 'ok' as const])));
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const behaviours: Record<string, Behaviour> = {};
      for (const name of this.#endpoints) {
        behaviours[name] = this.#random.chance(0.25) ? this.#random.pick(badBehaviours) : 'ok';
      }
      this.#receivers.setBehaviours(behaviours);
      const bad = Object.entries(behaviours).filter(([, behaviour]) => behaviour !== 'ok');
      const what = bad.map(([name, behaviour]) => `${name} ${behaviour}`).join(', ') || 'all well';
      const now = Date.now();
      this.#log.push({ kind: 'receivers_flap', what, hits: 'none', from: now, to: now, recoveredAt: now });
      await delay(this.#random.between(700, 2500));
    }
  }
}
