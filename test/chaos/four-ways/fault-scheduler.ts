import { setTimeout as delay } from 'node:timers/promises';
import type { Child } from '../child.ts';
import type { Fault } from '../faults.ts';
import type { Random } from '../random.ts';
import { Postgres } from '../system.ts';
import { killEverything, type ShopFault, shopFaultKinds, shopFaults } from './faults.ts';
import type { World } from './world.ts';

/** The faults of one round: every kind once, and twice those that most likely hit a critical moment. */
const ROUND: readonly (keyof typeof shopFaults)[] = [...shopFaultKinds, 'kill_shop', 'kill_relay'];

/** Begins one fault after another without waiting for recovery, and tracks which processes are in use by a fault. */
export class FaultScheduler {
  readonly #world: World;
  readonly #random: Random;
  readonly #log: Fault[];
  readonly #complaints: string[];
  readonly #busy = new Set<Child | Postgres>();
  readonly #running = new Set<Promise<void>>();

  constructor(world: World, random: Random, log: Fault[], complaints: string[]) {
    this.#world = world;
    this.#random = random;
    this.#log = log;
    this.#complaints = complaints;
  }

  /** Runs one round. At its end everything is killed at once and restarted. */
  async round(restMs: number, faults = ROUND.length): Promise<void> {
    const { system, source } = this.#world;
    const kinds = this.#random.shuffled(ROUND).slice(0, faults);
    while (kinds.length > 0 && system.exits.length === 0) {
      await delay(this.#random.between(0.2, 1) * restMs);
      const begun = kinds.findIndex((kind) => this.#begin(kind, shopFaults[kind](this.#world, this.#random)));
      if (begun !== -1) kinds.splice(begun, 1);
    }
    await Promise.all(this.#running);
    await Promise.all([source.restartable(), system.postgres.restartable()]);
    await delay(this.#random.between(0.2, 1) * restMs);
    this.#begin('kill_everything', killEverything(this.#world, this.#random));
    await Promise.all(this.#running);
  }

  /** Returns false if a process that it needs is in use. */
  #begin(kind: Fault['kind'], { what, needs, run }: ShopFault): boolean {
    if (needs.some((one) => this.#busy.has(one) || mustNotRestart(one))) return false;
    for (const one of needs) this.#busy.add(one);
    const now = Date.now();
    const fault: Fault = { kind, what, hits: 'none', from: now, to: now, recoveredAt: now };
    this.#log.push(fault);
    const running = run((about) => this.#complaints.push(about))
      .catch((error: unknown) => {
        const about = error instanceof Error ? error.message : error;
        this.#complaints.push(`No recovery from "${what}": ${about}`);
      })
      .finally(() => {
        fault.to = Date.now();
        fault.recoveredAt = fault.to;
        for (const one of needs) this.#busy.delete(one);
        this.#running.delete(running);
      });
    this.#running.add(running);
    return true;
  }
}

const mustNotRestart = (one: Child | Postgres): boolean => one instanceof Postgres && !one.mayRestart;
