/** POSTHORN_BACKBONE=kafka: events are accepted in a Kafka topic and moved to PostgreSQL (SCL-2). */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { checkKafka } from '../../../src/cli/doctor/check-kafka.ts';
import { loadConfig } from '../../../src/config/index.ts';
import { newEventId } from '../../../src/domain/ids.ts';
import { createAcceptClient } from '../../../src/kafka/accept-client.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { missingKafka, TestBroker } from '../../support/kafka/broker.ts';
import {
  changeTopic,
  createTopic,
  deleteTopic,
  listGroups,
  newProducer,
} from '../../support/kafka/topics.ts';
import { lockRows } from '../../support/lock-rows.ts';
import { needs } from '../../support/needs.ts';
import {
  type Answer,
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  startTestPosthorn,
  type TestPosthorn,
  untilDeliveries,
} from '../../support/posthorn.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';

const missing = missingKafka();
let broker: TestBroker;

beforeAll(async () => {
  if (missing === null) broker = await TestBroker.start();
});
afterAll(() => broker?.remove());

async function newDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  return database;
}

const newTopic = (): string => `accept-${randomUUID()}`;

async function start(
  database: Pick<TestDatabase, 'url'>,
  topic: string,
  env: Readonly<Record<string, string>> = {},
  args: readonly string[] = [],
): Promise<TestPosthorn> {
  const posthorn = await startTestPosthorn({
    database,
    args,
    env: {
      POSTHORN_BACKBONE: 'kafka',
      POSTHORN_KAFKA_BROKERS: broker.address,
      POSTHORN_KAFKA_ACCEPT_TOPIC: topic,
      POSTHORN_KAFKA_ACCEPT_PARTITIONS: '4',
      POSTHORN_KAFKA_ACCEPT_REPLICAS: '1',
      POSTHORN_KAFKA_ACCEPT_MIN_INSYNC: '1',
      POSTHORN_KAFKA_RENEW_MS: '200ms',
      POSTHORN_KAFKA_LEASE_MS: '1500ms',
      ...env,
    },
  });
  onTestFinished(async () => {
    await posthorn.kill('SIGKILL').catch(() => {});
  });
  return posthorn;
}

const countEvents = async (database: TestDatabase): Promise<number> =>
  (await database.query<{ n: number }>('select count(*)::int as n from posthorn.events'))[0]!.n;

/** The numbers in the data of all events, sorted. A number twice: it became two events. */
const storedNumbers = async (database: TestDatabase): Promise<number[]> =>
  (
    await database.query<{ n: number }>(
      "select (convert_from(data, 'UTF8')::json ->> 'n')::int as n from posthorn.events order by 1",
    )
  ).map(({ n }) => n);

const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

const post = (posthorn: TestPosthorn, body: unknown, headers?: Record<string, string>): Promise<Answer> =>
  posthorn.api('POST', '/v1/events', body, headers === undefined ? {} : { headers });

describe('SCL-2: Kafka as the accept log', needs(missing), () => {
  test('an event is accepted, found at once, and delivered byte for byte', async () => {
    const database = await newDatabase();
    const posthorn = await start(database, newTopic());
    const tenant = newTenant();
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    const data = '{"a" :1.0, "b":[ ],"ü":"\\u00fc", "big":12345678901234567890}';
    const { body } = await expectStatus(
      post(
        posthorn,
        `{"type":"order.paid","tenant":"${tenant}","channels":["eu"],"headers":{"x-a":"b"},"data":${data}}`,
        { 'content-type': 'application/json' },
      ),
      202,
    );
    expect(body).toMatchObject({ type: 'order.paid', tenant, deliveries: 1, duplicate: false });
    const found = await expectStatus(posthorn.api('GET', `/v1/events/${body.id}`), 200);
    expect(found.text).toContain(`"data":${data}`);
    expect(found.body).toMatchObject({ id: body.id, channels: ['eu'], headers: { 'x-a': 'b' } });
    await untilDeliveries(posthorn, body.id, 'delivered');
    expect(receiver.requests[0]!.body.toString()).toContain(data);
    // An id that was never accepted is not found.
    const unknown = await posthorn.api('GET', `/v1/events/${body.id.slice(0, -3)}zz0`);
    expect([404, 422]).toContain(unknown.status);
    await posthorn.stop();
  });

  test('a batch keeps its order, and a FIFO endpoint gets it in this order', async () => {
    const database = await newDatabase();
    const posthorn = await start(database, newTopic());
    const tenant = newTenant();
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant, ordering: 'fifo' });
    for (const request of numbers(0, 5)) {
      const events = numbers(0, 20).map((n) => ({
        type: 'a.b',
        tenant,
        data: { n: request * 20 + n },
        ...(n % 3 === 0 && { idempotency_key: `k${request}-${n}` }),
      }));
      const { body } = await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }), 202);
      expect(body.results.every(({ id }: { id?: string }) => id !== undefined)).toBe(true);
    }
    await eventually('all are delivered', () => receiver.requests.length >= 100, { timeoutMs: 60_000 });
    expect(receiver.requests.map(({ body }) => JSON.parse(body.toString()).data.n)).toEqual(numbers(0, 100));
    await posthorn.stop();
  });

  test('an idempotency key: the same event once, another event 409', async () => {
    const database = await newDatabase();
    const posthorn = await start(database, newTopic());
    const tenant = newTenant();
    const event = { type: 'a.b', tenant, idempotency_key: 'k', data: { n: 1 } };
    const answers = await Promise.all(numbers(0, 8).map(() => expectStatus(post(posthorn, event), 202)));
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
    expect(answers.filter(({ body }) => !body.duplicate)).toHaveLength(1);
    const { id } = answers[0]!.body;
    await expectStatus(posthorn.api('GET', `/v1/events/${id}`), 200);
    const again = await expectStatus(post(posthorn, event), 202);
    expect(again.body).toMatchObject({ id, duplicate: true });
    const other = await expectStatus(post(posthorn, { ...event, data: { n: 2 } }), 409);
    expect(other.body.code).toBe('idempotency_conflict');
    expect(await storedNumbers(database)).toEqual([1]);
    await posthorn.stop();
  });

  test('a key that was claimed by a process that died: a repeated request is stored, under the claimed id', async () => {
    const database = await newDatabase();
    const topic = newTopic();
    const posthorn = await start(database, topic);
    const tenant = newTenant();
    const event = { type: 'a.b', tenant, idempotency_key: 'k', data: { n: 1 } };
    const first = await expectStatus(post(posthorn, event), 202);
    await expectStatus(posthorn.api('GET', `/v1/events/${first.body.id}`), 200);
    // As if the process had died after the claim: the event is nowhere.
    await database.query('delete from posthorn.events');
    await database.query('update posthorn.idempotency_keys set claimed = true');
    const repeated = await expectStatus(post(posthorn, event), 202);
    expect(repeated.body).toMatchObject({ id: first.body.id, duplicate: true });
    await expectStatus(posthorn.api('GET', `/v1/events/${first.body.id}`), 200);
    const [key] = await database.query<{ claimed: boolean }>('select claimed from posthorn.idempotency_keys');
    expect(key!.claimed).toBe(false);
    // The same, but the next request comes to a process that stores events in PostgreSQL: it must not answer with an event that
    // does not exist.
    await database.query('delete from posthorn.events');
    await database.query('update posthorn.idempotency_keys set claimed = true');
    const other = await start(database, topic, { POSTHORN_BACKBONE: 'postgres' });
    const stored = await expectStatus(post(other, event), 202);
    await expectStatus(other.api('GET', `/v1/events/${stored.body.id}`), 200);
    expect(await storedNumbers(database)).toEqual([1]);
  });

  test('an endpoint that one process creates gets the next event that another accepts', async () => {
    const database = await newDatabase();
    const topic = newTopic();
    const [a, b] = [await start(database, topic), await start(database, topic, {}, ['--role', 'api'])];
    const receiver = await newReceiver();
    const ids: string[] = [];
    for (const n of numbers(0, 300)) {
      const tenant = `t${n}`;
      await createEndpoint(a, { url: receiver.url, tenant });
      ids.push((await publish(b, { type: 'a.b', tenant, data: { n } })).id);
    }
    await eventually('all are delivered', () => receiver.requests.length >= ids.length, {
      timeoutMs: 60_000,
    });
    expect(receiver.requests.map(({ body }) => JSON.parse(body.toString()).id).toSorted()).toEqual(
      ids.toSorted(),
    );
    await b.stop();
    await a.stop();
  });

  test('switching to Kafka and back loses nothing', async () => {
    const database = await newDatabase();
    const topic = newTopic();
    const tenant = newTenant();
    let n = 0;
    const publishSome = async (posthorn: TestPosthorn): Promise<void> => {
      const end = n + 50;
      for (; n < end; n += 1) await publish(posthorn, { type: 'a.b', tenant, data: { n } });
    };
    const run = async (backbone: string, signal: NodeJS.Signals) => {
      const posthorn = await start(database, topic, { POSTHORN_BACKBONE: backbone });
      await publishSome(posthorn);
      await posthorn.kill(signal);
    };
    await run('postgres', 'SIGTERM');
    await run('kafka', 'SIGKILL');
    await run('postgres', 'SIGKILL');
    await run('kafka', 'SIGKILL');
    const last = await start(database, topic, { POSTHORN_BACKBONE: 'postgres' });
    await publishSome(last);
    await eventually('all are stored', async () => (await countEvents(database)) >= n);
    expect(await storedNumbers(database)).toEqual(numbers(0, n));
    // Once it is empty, the topic can be deleted.
    await last.stop();
    await deleteTopic(broker.address, topic);
    const after = await start(database, topic, { POSTHORN_BACKBONE: 'postgres' });
    const { status } = await after.api('GET', `/v1/events/evt_01kza7mbs0b8ar0000000000`);
    expect(status).toBe(404);
    await after.stop();
  });

  test('PostgreSQL away: events without keys are accepted, others get 503, and all that got 202 is stored', async () => {
    const database = await newDatabase();
    const proxy = await startTcpProxy(database.url);
    onTestFinished(() => proxy.cut());
    const posthorn = await start({ url: proxy.url }, newTopic());
    const tenant = newTenant();
    const { body: created } = await expectStatus(
      posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant }),
      201,
    );
    const send = (n: number, key?: string) =>
      posthorn.api(
        'POST',
        '/v1/events',
        { type: 'a.b', data: { n }, ...(key !== undefined && { idempotency_key: key }) },
        { key: created.key },
      );
    await expectStatus(send(0), 202);
    await proxy.cut();
    const keyed = await send(1000, 'k');
    expect(keyed.status).toBe(503);
    expect(keyed.headers['retry-after']).toBeDefined();
    // Longer than API keys are cached.
    const until = Date.now() + 12_000;
    let n = 1;
    while (Date.now() < until || n < 20) {
      await expectStatus(send(n), 202);
      n += 1;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    expect((await posthorn.api('GET', '/readyz')).status).toBe(200);
    await proxy.restore();
    await eventually('all are stored', async () => (await countEvents(database)) >= n, { timeoutMs: 60_000 });
    expect(await storedNumbers(database)).toEqual(numbers(0, n));
    await expectStatus(send(1000, 'k'), 202);
  });

  test('a key that another transaction has locked does not refuse other keys', async () => {
    const database = await newDatabase();
    const posthorn = await start(database, newTopic());
    const tenant = newTenant();
    const send = (key: string) =>
      post(posthorn, { type: 'a.b', tenant, idempotency_key: key, data: { n: 1 } });
    await expectStatus(send('locked'), 202);
    await eventually('it is stored', async () => (await countEvents(database)) === 1);
    const unlock = await lockRows(
      database,
      "update posthorn.idempotency_keys set expires_at = expires_at where key = 'locked'",
    );
    const locked = send('locked');
    const others = await Promise.all(numbers(0, 30).map((n) => send(`k${n}`)));
    expect(new Set(others.map(({ status }) => status))).toEqual(new Set([202]));
    await unlock();
    expect((await expectStatus(locked, 202)).body).toMatchObject({ duplicate: true });
  });

  test('an event that is larger than the topic takes gets 413 at once, and the others of the partition go on', async () => {
    const database = await newDatabase();
    const topic = newTopic();
    const posthorn = await start(database, topic, { POSTHORN_KAFKA_ACCEPT_PARTITIONS: '1' });
    // An operator changes it while Posthorn runs.
    await changeTopic(broker.address, topic, { name: 'max.message.bytes', value: '50000' });
    const sizes = [10, 10, 100_000, 10, 10];
    const send = () =>
      Promise.all(
        sizes.map((size) =>
          post(posthorn, { type: 'a.b', tenant: newTenant(), data: { n: size, filler: 'x'.repeat(size) } }),
        ),
      );
    await eventually('the broker uses the new setting', async () => (await send())[2]!.status === 413);
    const startedAt = Date.now();
    expect((await send()).map(({ status }) => status)).toEqual([202, 202, 413, 202, 202]);
    // Not after the 10 seconds for which a log that does not answer is tried.
    expect(Date.now() - startedAt).toBeLessThan(5_000);
  });

  test('a tenant that is deleted and created again gets its new events, though the ids of old ones were ahead of the clock', async () => {
    const database = await newDatabase();
    const posthorn = await start(database, newTopic(), { POSTHORN_EXPUNGE_SETTLE_MS: '0' });
    const tenant = newTenant();
    await publish(posthorn, { type: 'a.b', tenant, data: { n: 1 } });
    await eventually('it is stored', async () => (await countEvents(database)) === 1);
    // A node whose clock was ten minutes ahead made it.
    await database.query('update posthorn.events set id = overlay(id::text placing $1 from 1 for 13)::uuid', [
      newEventId(Date.now() + 600_000).slice(0, 13),
    ]);
    await expectStatus(posthorn.api('DELETE', `/v1/tenants/${tenant}?expunge=true&confirm=${tenant}`), 202);
    await eventually('its data is deleted', async () => (await countEvents(database)) === 0);
    const again = await eventually('the tenant can be used again', async () => {
      const answer = await post(posthorn, { type: 'a.b', tenant, data: { n: 2 } });
      return answer.status === 202 ? answer : undefined;
    });
    await expectStatus(posthorn.api('GET', `/v1/events/${again.body.id}`), 200);
    expect(await storedNumbers(database)).toEqual([2]);
  });

  test('LIF-3: an event that was expunged after the backup is not stored again from the topic', async () => {
    const database = await newDatabase();
    const topic = newTopic();
    const first = await start(database, topic);
    const tenant = newTenant();
    const receiver = await newReceiver();
    await createEndpoint(first, { url: receiver.url, tenant });
    const [secret, other] = [
      await publish(first, { type: 'a.b', tenant, data: { n: 1 } }),
      await publish(first, { type: 'a.b', tenant, data: { n: 2 } }),
    ];
    for (const { id } of [secret, other]) await untilDeliveries(first, id, 'delivered');
    await expectStatus(first.api('DELETE', `/v1/events/${secret.id}/payload`), 204);
    await first.stop();
    // A backup from before the events, and the tombstone that the archive has.
    for (const table of ['events', 'deliveries', 'attempts', 'queue'])
      await database.query(`delete from posthorn.${table}`);
    await database.query("update posthorn.kafka_partitions set position = 0, done = '{}'");
    const second = await start(database, topic);
    await untilDeliveries(second, other.id, 'delivered');
    expect(await storedNumbers(database)).toEqual([2]);
    await expectStatus(second.api('GET', `/v1/events/${secret.id}`), 404);
    const sent = receiver.requests.map(({ headers }) => headers['webhook-id']);
    expect(sent.filter((id) => id === secret.id)).toHaveLength(1);
    expect(sent.filter((id) => id === other.id)).toHaveLength(2);
  });

  test('doctor checks the brokers and the topic', async () => {
    const check = (env: Readonly<Record<string, string>>) =>
      checkKafka(loadConfig({ mode: 'serve', flags: {}, env: { DATABASE_URL: 'postgres://db/x', ...env } }));
    expect(await check({})).toBeNull();
    const env = { POSTHORN_BACKBONE: 'kafka', POSTHORN_KAFKA_BROKERS: broker.address };
    const fresh = await check({ ...env, POSTHORN_KAFKA_ACCEPT_TOPIC: newTopic() });
    expect(fresh).toMatchObject({ state: 'ok', detail: expect.stringContaining('will create') });
    const name = await createTopic(broker.address, { partitions: 3 });
    const known = await check({ ...env, POSTHORN_KAFKA_ACCEPT_TOPIC: name });
    expect(known).toMatchObject({ state: 'ok', detail: expect.stringContaining(`${name} (3 partitions)`) });
    const away = await check({ ...env, POSTHORN_KAFKA_BROKERS: '127.0.0.1:1' });
    expect(away).toMatchObject({ state: 'problem' });
  });

  test('a topic that could lose confirmed events, or is too small for the largest event, is not used', async () => {
    const retentionMs = 3_600_000;
    const safe = { 'message.timestamp.type': 'LogAppendTime' };
    const open = async (settings: Readonly<Record<string, string>>, minInsync = 1): Promise<number> => {
      const name = await createTopic(broker.address, { settings: { ...safe, ...settings } });
      const client = createAcceptClient(
        { brokers: [broker.address], tls: null, sasl: null },
        { name, partitions: 4, replicas: 1, minInsync, retentionMs, maxRecordBytes: 300_000 },
      );
      onTestFinished(() => client.close());
      return client.openTopic();
    };
    await expect(open({ 'cleanup.policy': 'compact' })).rejects.toThrow('cleanup.policy');
    await expect(open({ 'unclean.leader.election.enable': 'true' })).rejects.toThrow('unclean');
    await expect(open({ 'max.message.bytes': '1000000' })).rejects.toThrow('at least 1048576');
    await expect(open({}, 2)).rejects.toThrow('min.insync.replicas is 1 and must be at least 2');
    await expect(open({ 'retention.bytes': '1000000' })).rejects.toThrow('retention.bytes');
    await expect(open({ 'retention.ms': '60000' })).rejects.toThrow('retention.ms is 60000');
    await expect(open({ 'message.timestamp.type': 'CreateTime' })).rejects.toThrow('LogAppendTime');
    expect(await open({ 'retention.ms': '-1' })).toBe(1);
    expect(await open({})).toBe(1);
  });

  test('no consumer group exists that a process which died could block', async () => {
    const database = await newDatabase();
    const posthorn = await start(database, newTopic());
    const { id } = await publish(posthorn, { type: 'a.b', tenant: newTenant(), data: 1 });
    await expectStatus(posthorn.api('GET', `/v1/events/${id}`), 200);
    expect(await listGroups(broker.address)).toEqual([]);
    await posthorn.stop();
  });

  test('a record that is not an event of this deployment is set aside, and does not block', async () => {
    const database = await newDatabase();
    const topic = newTopic();
    const posthorn = await start(database, topic, { POSTHORN_KAFKA_ACCEPT_PARTITIONS: '1' });
    const produce = newProducer(broker.address, topic);
    await produce([
      { value: '{}' },
      { value: '{}', headers: { posthorn: JSON.stringify({ v: 1, deployment: 'other' }) } },
      { value: '{}', headers: { posthorn: JSON.stringify({ v: 2 }) } },
    ]);
    const { id } = await publish(posthorn, { type: 'a.b', tenant: newTenant(), data: 1 });
    await expectStatus(posthorn.api('GET', `/v1/events/${id}`), 200);
    const { body } = await expectStatus(posthorn.api('GET', '/v1/sources/kafka/rejected'), 200);
    expect(body.data.map(({ reason }: { reason: string }) => reason).toReversed()).toEqual([
      'the record was not written by Posthorn',
      expect.stringContaining('another database'),
      expect.stringContaining('version 2'),
    ]);
    await posthorn.stop();
  });
});
