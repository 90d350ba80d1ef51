/**
 * The faults of the shop, the relays, Posthorn and both databases. Unlike in the other run, faults overlap: each names
 * the processes it needs, and may begin while others recover.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Child } from '../child.ts';
import type { Random } from '../random.ts';
import type { Postgres } from '../system.ts';
import type { World } from './world.ts';

export interface ShopFault {
  readonly what: string;
  /** The processes that it needs. No other fault uses them meanwhile. */
  readonly needs: readonly (Child | Postgres)[];
  /** Inflicts the fault. Resolves when all processes have recovered. */
  run(complain: (about: string) => void): Promise<void>;
}

type Plan = (world: World, random: Random) => ShopFault;

const kill = (victims: readonly Child[], what: string, random: Random): ShopFault => ({
  what: `kill -9 ${what}`,
  needs: victims,
  async run() {
    await Promise.all(victims.map((child) => child.kill()));
    await delay(random.between(50, 700));
    await Promise.all(victims.map((child) => child.bringBack()));
  },
});

const terminate = (child: Child): ShopFault => ({
  what: `SIGTERM ${child.name}`,
  needs: [child],
  async run(complain) {
    const began = Date.now();
    const how = await child.stop();
    if (how !== 'exit code 0')
      complain(`${child.name} ended with ${how} after SIGTERM (${Date.now() - began} ms)`);
    await child.bringBack();
  },
});

const restart = (whose: string, postgres: Postgres, how: 'fast' | 'immediate'): ShopFault => ({
  what: `${whose} PostgreSQL: ${how} shutdown, and started again`,
  needs: [postgres],
  run: () => postgres.restart(how),
});

export const shopFaults = {
  kill_shop: ({ shop }, random) => kill([shop], 'the shop', random),

  kill_relay({ relays }, random) {
    const relay = random.pick(relays);
    return kill([relay], relay.name, random);
  },

  /** Creates a backlog, because no relay of the mode reads for a while. */
  kill_relays_of_a_mode({ relays }, random) {
    const mode = random.pick(['poll', 'cdc'] as const);
    const victims = relays.filter((relay) => relay.mode === mode);
    return kill(victims, `all relays that ${mode}`, random);
  },

  stop_relay: ({ relays }, random) => terminate(random.pick(relays)),

  pause_relay({ relays }, random) {
    const relay = random.pick(relays);
    const forMs = Math.round(random.between(200, 2000));
    return {
      what: `SIGSTOP ${relay.name} for ${forMs} ms`,
      needs: [relay],
      async run() {
        relay.pause();
        await delay(forMs);
        relay.resume();
      },
    };
  },

  /** Pulls or silences the cable. Data that was held back while it was silent arrives late or is lost. */
  cut_off_relay({ relays }, random) {
    const relay = random.pick(relays.filter(({ cables }) => cables.length > 0));
    const { to, cable } = random.pick(relay.cables);
    const forMs = Math.round(random.between(200, 1500));
    const how = random.pick(['pulled', 'silent, then late', 'silent, then cut'] as const);
    return {
      what: `the cable from ${relay.name} to ${to} ${how}, for ${forMs} ms`,
      needs: [relay],
      async run() {
        if (how === 'pulled') cable.pull();
        else cable.silence();
        await delay(forMs);
        if (how === 'silent, then cut') cable.cut();
        cable.mend();
      },
    };
  },

  kill_posthorn({ system }, random) {
    const member = random.pick(system.members);
    return kill([member], member.name, random);
  },

  stop_posthorn: ({ system }, random) => terminate(random.pick(system.members)),

  restart_postgres: ({ system }, random) =>
    restart("Posthorn's", system.postgres, random.pick(['fast', 'immediate'] as const)),

  /** Kills the relays while they have read events that they cannot store. */
  kill_relays_without_postgres({ system, source, shop, relays }, random) {
    return {
      what: "Posthorn's PostgreSQL: immediate shutdown, and kill -9 of all relays",
      // The shop must run, or the relays would have read nothing.
      needs: [system.postgres, source, shop, ...relays],
      async run() {
        const back = system.postgres.restart('immediate');
        await delay(random.between(50, 300));
        await Promise.all(relays.map((relay) => relay.kill()));
        await back;
        await Promise.all(relays.map((relay) => relay.bringBack()));
      },
    };
  },

  restart_source_fast: ({ source }) => restart("the shop's", source, 'fast'),

  /** The slot then goes back to its position at the last checkpoint, so that much is read again. */
  restart_source_immediate: ({ source }) => restart("the shop's", source, 'immediate'),
} satisfies Record<string, Plan>;

export const shopFaultKinds = Object.keys(shopFaults) as (keyof typeof shopFaults)[];
export type ShopFaultKind = keyof typeof shopFaults | 'kill_everything';

/** A power failure of the whole rack. */
export function killEverything({ system, source, shop, relays }: World, random: Random): ShopFault {
  const children = [shop, ...relays, ...system.members];
  return {
    what: 'kill -9 of all processes, immediate shutdown of both databases',
    needs: [...children, source, system.postgres],
    async run() {
      // Makes the position of the slot durable. If a relay confirmed too much, those events are lost now.
      await source.query('checkpoint');
      const databases = [source, system.postgres].map((postgres) => postgres.restart('immediate'));
      await Promise.all(children.map((child) => child.kill()));
      // Some processes start before their database does.
      await delay(random.between(0, 500));
      await Promise.all([...databases, ...children.map((child) => child.bringBack())]);
    },
  };
}
