/** The processes besides Posthorn: the shop, its own PostgreSQL, and the relays. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { initStatements } from '../../../src/relay/init.ts';
import type { Cable } from '../cable.ts';
import { Child, type ChildOptions } from '../child.ts';
import type { Postgres, System } from '../system.ts';
import { FOLLOWED_TABLE, ORDERS_TABLE, POLLED_TABLE } from './ways.ts';

type Mode = 'poll' | 'cdc';
const TABLES: Record<Mode, string> = { poll: POLLED_TABLE, cdc: FOLLOWED_TABLE };
const SLOT = 'posthorn_chaos';
const SHOP = fileURLToPath(new URL('./shop.ts', import.meta.url));

export class ShopProcess extends Child {
  override async start(): Promise<void> {
    this.spawn([SHOP]);
  }

  protected override isReady(): boolean {
    return this.firstOutput !== '';
  }
}

export class RelayProcess extends Child {
  readonly mode: Mode;
  readonly #program: string;
  /** The cables to the source and to Posthorn's database. */
  readonly cables: readonly { readonly to: string; readonly cable: Cable }[];

  constructor(options: ChildOptions & { program: string; mode: Mode; cables: RelayProcess['cables'] }) {
    super(options);
    this.mode = options.mode;
    this.#program = options.program;
    this.cables = options.cables;
  }

  override async start(): Promise<void> {
    this.spawn([this.#program, 'relay', '--mode', this.mode]);
  }

  protected override isReady(): boolean {
    return this.firstOutput.includes('Relaying from');
  }
}

export class World {
  readonly system: System;
  readonly source: Postgres;
  readonly shop: ShopProcess;
  readonly relays: RelayProcess[] = [];

  constructor(
    system: System,
    source: Postgres,
    { seed, ordersPerSecond }: { seed: number; ordersPerSecond: number },
  ) {
    this.system = system;
    this.source = source;
    this.shop = new ShopProcess({
      name: 'shop',
      logFile: join(system.postgres.dir, 'shop.log'),
      env: {
        NODE_NO_WARNINGS: '1',
        SHOP_POSTHORN_URL: system.postgres.url,
        SHOP_SOURCE_URL: source.url,
        SHOP_SEED: String(seed),
        SHOP_ORDERS_PER_SECOND: String(ordersPerSecond),
      },
      onExit: (exit) => system.exits.push(exit),
    });
  }

  /** Starts two relays of each mode: those that poll share the rows, and one of the others stands by. */
  async start(): Promise<void> {
    for (const postgres of [this.system.postgres, this.source]) await postgres.query(ORDERS_TABLE);
    await slowDown(this.system.postgres, 'insert on posthorn.events');
    for (const mode of ['poll', 'cdc'] as const) {
      const names = { table: TABLES[mode], publication: TABLES[mode], slot: SLOT };
      for (const statement of initStatements(names, mode)) await this.source.query(statement);
      await slowDown(this.source, `delete on ${TABLES[mode]}`);
      await this.#addRelay(mode, 1, true);
      await this.#addRelay(mode, 2, false);
    }
    await Promise.all(this.relays.map((relay) => relay.ready(60_000)));
    await this.shop.start();
    await this.shop.ready(60_000);
  }

  /** Describes what the shop committed and no relay has read, or returns null. Call it after the shop has closed. */
  async unread(): Promise<string | null> {
    this.#closedAt ??= (
      await this.source.query<{ lsn: string }>('select pg_current_wal_flush_lsn()::text as lsn')
    )[0]!.lsn;
    const [row] = await this.source.query<{ polled: number; followed: number; slot: string; read: boolean }>(
      `select (select count(*)::int from ${POLLED_TABLE}) as polled,
              (select count(*)::int from ${FOLLOWED_TABLE}) as followed,
              confirmed_flush_lsn::text as slot, confirmed_flush_lsn >= $2 as read
         from pg_replication_slots where slot_name = $1`,
      [SLOT, this.#closedAt],
    );
    if (row === undefined) return 'There is no slot.';
    const { polled, followed, slot, read } = row;
    if (polled === 0 && followed === 0 && read) return null;
    return `${polled} rows to poll, ${followed} rows to follow, the slot is at ${slot}, the shop closed at ${this.#closedAt}`;
  }
  #closedAt: string | null = null;

  async #addRelay(mode: Mode, number: number, cabled: boolean): Promise<void> {
    const { system, source } = this;
    const name = `${mode}-${number}`;
    const [toSource, toPosthorn] = cabled
      ? [await system.addCable(source), await system.addCable(system.postgres)]
      : [null, null];
    const relay = new RelayProcess({
      name,
      program: this.system.program,
      mode,
      cables:
        toSource === null || toPosthorn === null
          ? []
          : [
              { to: 'its source', cable: toSource },
              { to: "Posthorn's PostgreSQL", cable: toPosthorn },
            ],
      logFile: join(system.postgres.dir, `${name}.log`),
      env: {
        NODE_NO_WARNINGS: '1',
        DATABASE_URL: toPosthorn === null ? system.postgres.url : system.postgres.urlThrough(toPosthorn.port),
        POSTHORN_RELAY_FROM: toSource === null ? source.url : source.urlThrough(toSource.port),
        POSTHORN_RELAY_NAME: mode,
        POSTHORN_RELAY_TABLE: TABLES[mode],
        POSTHORN_RELAY_PUBLICATION: TABLES[mode],
        POSTHORN_RELAY_SLOT: SLOT,
        POSTHORN_RELAY_POLL_MS: '10',
        POSTHORN_RELAY_REPORT_MS: '200',
        POSTHORN_LOG_LEVEL: process.env.CHAOS_LOG_LEVEL ?? 'warn',
        POSTHORN_LOG_FORMAT: 'json',
      },
      onExit: (exit) => system.exits.push(exit),
    });
    this.relays.push(relay);
    await relay.start();
  }

  async stop(): Promise<void> {
    const children = [this.shop, ...this.relays];
    for (const child of children) child.resume();
    await Promise.all(children.map((child) => child.kill()));
  }
}

/**
 * Simulates a slow disk. It extends the moments in which a kill matters: after a row is read and before Posthorn has
 * stored it, and after that and before the row is deleted.
 */
async function slowDown(postgres: Postgres, when: string): Promise<void> {
  await postgres.query(`
    create or replace function shop.take_time() returns trigger language plpgsql as $$ begin
      perform pg_sleep(0.02); return null; end $$;
    create trigger slow before ${when} for each statement execute function shop.take_time()`);
}
