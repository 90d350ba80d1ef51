/** What a hostile tenant can do with its own key, beside a tenant that is measured (victim.ts). */
import { connect, type Socket } from 'node:net';
import { Agent, request } from 'undici';
import type { TestDatabase } from '../../support/database.ts';
import { createManyEndpoints, type ManyEndpoints } from '../../support/many-endpoints.ts';
import { createEndpoint, expectStatus, type TestPosthorn } from '../../support/posthorn.ts';
import { type Behaviour, type Receiver, type Reply, startReceiver } from '../../support/receiver.ts';

/** Posthorn may refuse a valid request: a conflict, a limit, overload. An endpoint that was just deleted is 404. */
const REFUSALS: ReadonlySet<number> = new Set([404, 409, 429, 503]);

let tenants = 0;

export class Attacker {
  readonly tenant: string;
  readonly #posthorn: TestPosthorn;
  readonly #database: TestDatabase;
  readonly #client = new Agent({ connections: 50 });
  readonly #receivers: Receiver[] = [];
  readonly #sockets: Socket[] = [];
  readonly #loops: Promise<void>[] = [];
  key = '';
  /** Answers that say that a request of the attack is not valid. */
  readonly mistakes: string[] = [];
  #isOver = false;

  private constructor(posthorn: TestPosthorn, database: TestDatabase) {
    tenants += 1;
    this.tenant = `attacker-${tenants}`;
    this.#posthorn = posthorn;
    this.#database = database;
  }

  static async create(posthorn: TestPosthorn, database: TestDatabase): Promise<Attacker> {
    const attacker = new Attacker(posthorn, database);
    const body = { scope: 'tenant', tenant: attacker.tenant };
    attacker.key = (await expectStatus(posthorn.api('POST', '/v1/keys', body), 201)).body.key;
    return attacker;
  }

  /** Sends a request with the key of the attacker. Whatever the answer is, the attack goes on. */
  async call(
    method: string,
    path: string,
    body?: unknown,
    { key = this.key, headers = {} }: { key?: string; headers?: Record<string, string> } = {},
    // biome-ignore lint/suspicious/noExplicitAny: an attack reads the parts it knows
  ): Promise<any> {
    try {
      const answer = await request(`${this.#posthorn.url}${path}`, {
        dispatcher: this.#client,
        method: method as 'GET',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
        body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
      });
      const text = await answer.body.text();
      if (answer.statusCode >= 400 && !REFUSALS.has(answer.statusCode))
        this.mistakes.push(`${method} ${path}: ${text}`);
      return text === '' ? null : JSON.parse(text);
    } catch {
      return null;
    }
  }

  async receiver(answer: Reply | Behaviour | 'nothing' = {}): Promise<string> {
    const receiver = await startReceiver();
    this.#receivers.push(receiver);
    if (answer === 'nothing') receiver.hang();
    else receiver.answer(answer);
    return receiver.url;
  }

  async endpoint(url: string, settings: object = {}): Promise<string> {
    return (await createEndpoint(this.#posthorn, { url, tenant: this.tenant, ...settings })).id;
  }

  /** Creates many endpoints, faster than the API does. */
  endpoints(count: number, settings: Omit<ManyEndpoints, 'tenant' | 'count'>): Promise<string[]> {
    return createManyEndpoints(this.#database, { tenant: this.tenant, count, ...settings });
  }

  /** Publishes events in batches. `eventOf` makes the event with this number. */
  async publish(count: number, eventOf: (n: number) => object = () => ({})): Promise<void> {
    for (let sent = 0; sent < count; sent += 500) {
      const events = Array.from({ length: Math.min(500, count - sent) }, (_, n) => ({
        tenant: this.tenant,
        type: 'attack.event',
        data: n,
        ...eventOf(sent + n),
      }));
      const body = await this.call('POST', '/v1/events/batch', { events });
      const invalid = (body?.results as { error?: { status: number } }[] | undefined)?.find(
        ({ error }) => error !== undefined && !REFUSALS.has(error.status),
      );
      if (invalid !== undefined) this.mistakes.push(JSON.stringify(invalid));
    }
  }

  /** Does the same again and again until the attack is over, several times at once. */
  loop(atOnce: number, act: (n: number) => Promise<unknown>): void {
    for (let each = 0; each < atOnce; each += 1)
      this.#loops.push(
        (async () => {
          for (let n = each; !this.#isOver; n += atOnce) await act(n);
        })(),
      );
  }

  /** Opens connections that send the beginning of a request, and nothing more. */
  connections(count: number, beginning: string): void {
    const { hostname, port } = new URL(this.#posthorn.url);
    for (let n = 0; n < count; n += 1) {
      const socket = connect(Number(port), hostname);
      socket.on('error', () => {});
      socket.write(beginning);
      this.#sockets.push(socket);
    }
  }

  /** Ends the attack and deletes its endpoints, so that the next attack begins without its deliveries. */
  async end(): Promise<void> {
    this.#isOver = true;
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(this.#loops);
    await this.#database.query(
      `with next as (update posthorn.subscription_version set version = version + 1 returning version)
       update posthorn.endpoints e set deleted_at = now(), version = next.version from next where tenant = $1`,
      [this.tenant],
    );
    await this.#database.query('delete from posthorn.queue where tenant = $1', [this.tenant]);
    await this.#database.query('delete from posthorn.fan_out_slices where tenant = $1', [this.tenant]);
    await Promise.all(this.#receivers.map((receiver) => receiver.close()));
    await this.#client.destroy();
  }
}
