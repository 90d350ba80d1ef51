/** Connections to brokers that require TLS and a password (SCL-2). */
import { createPrivateKey } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Admin, Producer, stringSerializers } from '@platformatic/kafka';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { certificates } from '../../support/certificates.ts';
import { createTestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { missingKafka, TestBroker } from '../../support/kafka/broker.ts';
import { needs } from '../../support/needs.ts';
import { startTestPosthorn } from '../../support/posthorn.ts';

const missing = missingKafka();
const TOPIC = 'orders';
const USER = { username: 'reader', password: 'very-secret' };
const oneLine = (pem: string): string => pem.trim().replaceAll('\n', '\\n');
/** The only form of a key that Kafka reads. */
const pkcs8 = (key: string): string =>
  createPrivateKey(key).export({ type: 'pkcs8', format: 'pem' }).toString();
let broker: TestBroker;
let folder: string;

beforeAll(async () => {
  if (missing !== null) return;
  folder = await mkdtemp(path.join(tmpdir(), 'posthorn-kafka-ca-'));
  await writeFile(path.join(folder, 'ca.pem'), certificates.authority);
  const login = 'required username="reader" password="very-secret"';
  broker = await TestBroker.start({
    protocol: 'SASL_SSL',
    users: { reader: 'very-secret' },
    settings: {
      'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-512',
      'sasl.mechanism.inter.broker.protocol': 'PLAIN',
      'listener.name.clients.plain.sasl.jaas.config': `org.apache.kafka.common.security.plain.PlainLoginModule ${login} user_reader="very-secret";`,
      'listener.name.clients.scram-sha-512.sasl.jaas.config': `org.apache.kafka.common.security.scram.ScramLoginModule ${login};`,
      'ssl.keystore.type': 'PEM',
      'ssl.keystore.certificate.chain': oneLine(certificates.valid.cert),
      'ssl.keystore.key': oneLine(pkcs8(certificates.valid.key)),
      'ssl.truststore.type': 'PEM',
      'ssl.truststore.certificates': oneLine(certificates.authority),
    },
  });
  const options = {
    clientId: 'test',
    bootstrapBrokers: [broker.address],
    tls: { ca: certificates.authority },
    sasl: { mechanism: 'PLAIN' as const, ...USER },
  };
  const admin = new Admin(options);
  await admin.createTopics({ topics: [TOPIC], partitions: 1, replicas: 1 });
  await admin.close();
  const producer = new Producer({ ...options, serializers: stringSerializers });
  await producer.send({ messages: [{ topic: TOPIC, value: '{"n":1}' }] });
  await producer.close();
});
afterAll(async () => {
  await broker?.remove();
  if (folder !== undefined) await rm(folder, { recursive: true });
});

async function start(env: Readonly<Record<string, string>>) {
  const database = await createTestDatabase();
  const posthorn = await startTestPosthorn({
    database,
    env: {
      POSTHORN_KAFKA_BROKERS: broker.address,
      POSTHORN_KAFKA_SOURCE_TOPICS: TOPIC,
      POSTHORN_KAFKA_TLS: 'true',
      POSTHORN_KAFKA_TLS_CA: path.join(folder, 'ca.pem'),
      POSTHORN_KAFKA_USERNAME: USER.username,
      POSTHORN_KAFKA_PASSWORD: USER.password,
      ...env,
    },
  });
  onTestFinished(async () => {
    await posthorn.stop();
    await database.drop();
  });
  return { database, posthorn };
}

describe('SCL-2: brokers with TLS and SASL', needs(missing), () => {
  test.each(['plain', 'scram-sha-512'])('%s: records become events', async (mechanism) => {
    const { database } = await start({ POSTHORN_KAFKA_SASL: mechanism });
    await eventually(
      'the record is an event',
      async () => (await database.query('select from posthorn.events')).length === 1,
    );
  });

  test('a wrong password: the server starts, says what is wrong, and reads nothing', async () => {
    const { database, posthorn } = await start({
      POSTHORN_KAFKA_SASL: 'scram-sha-512',
      POSTHORN_KAFKA_PASSWORD: 'wrong',
    });
    await eventually('it is in the log', () => /ask Kafka for its topics/.test(posthorn.output()));
    expect(posthorn.output()).not.toContain('very-secret');
    expect(await database.query('select from posthorn.events')).toEqual([]);
  });
});
