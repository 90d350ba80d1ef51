import { FIELD_SOURCE_RULE, parseFieldSource } from '../../domain/field-source.ts';
import { boolean, bytes, choice, duration, integer, listOf, text, texts } from '../kinds.ts';
import { DAY, HOUR, KIB, MIB, MINUTE, SECOND } from './units.ts';

const source = (about: string) =>
  listOf({ default: [], about, of: FIELD_SOURCE_RULE, isValid: (item) => parseFieldSource(item) !== null });

export const kafka = {
  kafkaBrokers: texts({
    default: [],
    about:
      'Brokers of the Kafka cluster, such as `kafka-1:9092,kafka-2:9092`, for `POSTHORN_KAFKA_SOURCE_TOPICS` and `POSTHORN_BACKBONE=kafka`. See [Kafka](kafka.md).',
  }),
  kafkaSourceTopics: texts({
    default: [],
    about: 'Topics whose records become events.',
  }),
  kafkaStart: choice({
    of: ['earliest', 'latest'],
    default: 'earliest',
    about:
      'Where to start reading a topic that Posthorn has never read: its oldest record, or only records from now on.',
  }),
  kafkaTls: boolean({ default: false, about: 'Whether connections to the brokers use TLS.' }),
  kafkaTlsCa: text({
    default: null,
    maxLength: 4096,
    about: 'File with the certificates (PEM) that the brokers are checked against. If unset: those of Node.',
  }),
  kafkaTlsCert: text({
    default: null,
    maxLength: 4096,
    about: 'File with the client certificate (PEM), for brokers that require one.',
  }),
  kafkaTlsKey: text({
    default: null,
    maxLength: 4096,
    about: 'File with the private key (PEM) of the client certificate.',
  }),
  kafkaSasl: choice({
    of: ['none', 'plain', 'scram-sha-256', 'scram-sha-512'],
    default: 'none',
    about: 'How Posthorn signs in to the brokers.',
  }),
  kafkaUsername: text({ default: null, maxLength: 1024, about: 'User name for the brokers.' }),
  kafkaPassword: text({
    default: null,
    maxLength: 1024,
    secret: true,
    about: 'Password for the brokers.',
  }),
  kafkaType: source(
    'Where the type of an event comes from: `topic`, `key`, `header:NAME`, `text:CONSTANT` or a path such as `$.order.type`. The first of several that has a value counts. If unset: from the CloudEvent or Debezium record, otherwise the name of the topic.',
  ),
  kafkaTenant: source(
    'Where the tenant comes from. If unset: the CloudEvents attribute `tenant`, or the tenant `default`.',
  ),
  kafkaIdempotencyKey: source(
    'Where the idempotency key comes from. If unset: source and id of a CloudEvent, the header `id` of a Debezium record, otherwise none.',
  ),
  kafkaChannels: source(
    'Where the channels come from: a JSON array of texts, or texts separated by commas. If unset: none.',
  ),
  kafkaTimestamp: source(
    'Where the time of the event comes from: RFC 3339, or milliseconds since 1970. If unset: `time` of a CloudEvent, otherwise the time of acceptance.',
  ),
  kafkaData: source(
    'Where `data` comes from. `$` is the whole value. If unset: the data of the CloudEvent, the payload of the Debezium record, otherwise the whole value.',
  ),
  kafkaOverflowRecords: integer({
    default: 10_000,
    min: 0,
    max: 10_000_000,
    about:
      'How many records of a partition may wait because their tenant is over its publish limit. When so many wait, the partition pauses.',
  }),
  kafkaRejectedRecords: integer({
    default: 100_000,
    min: 1,
    max: 10_000_000,
    about:
      'How many rejected records of a partition are kept. When there are so many, the partition pauses before the next one. In the accept topic it goes on: it keeps all records of this deployment, and leaves out others.',
  }),
  backbone: choice({
    of: ['postgres', 'kafka'],
    default: 'postgres',
    about:
      'Where published events are stored before Posthorn answers 202: in PostgreSQL, or in a Kafka topic, from which Posthorn moves them to PostgreSQL. See [Kafka as the accept log](scale-out.md#kafka-as-the-accept-log).',
  }),
  kafkaAcceptTopic: text({
    default: 'posthorn.accept',
    maxLength: 249,
    about:
      'The topic of `POSTHORN_BACKBONE=kafka`. Posthorn creates it. Deployments that share a Kafka cluster need different names.',
  }),
  kafkaAcceptPartitions: integer({
    default: 12,
    min: 1,
    max: 1000,
    about: 'How many partitions Posthorn creates the accept topic with. The events of a tenant are in one.',
  }),
  kafkaAcceptReplicas: integer({
    default: 3,
    min: 1,
    max: 15,
    about: 'How many brokers have a copy of each record of the accept topic, when Posthorn creates it.',
  }),
  kafkaAcceptMinInsync: integer({
    default: 2,
    min: 1,
    max: 15,
    about:
      'How many of these brokers must have an event before Posthorn answers 202 (`min.insync.replicas`). Posthorn creates the topic with it, and refuses a topic with less.',
  }),
  kafkaAcceptRetentionMs: duration({
    default: 7 * DAY,
    min: HOUR,
    max: 365 * DAY,
    about:
      'How long Kafka keeps the records of the accept topic, when Posthorn creates it. Posthorn refuses a topic that keeps them for a shorter time. Records that are older and not in PostgreSQL yet are lost.',
  }),
  acceptWithoutDatabaseMs: duration({
    default: 15 * MINUTE,
    min: 0,
    max: DAY,
    about:
      'With `POSTHORN_BACKBONE=kafka`: how long Posthorn accepts events while PostgreSQL does not answer. API keys that it has seen before stay valid for this long.',
  }),
  kafkaLeaseMs: duration({
    internal: true,
    default: 10 * SECOND,
    min: SECOND,
    max: 10 * MINUTE,
    about: 'A process that does not renew its lease for this long loses its partitions to other processes.',
  }),
  kafkaRenewMs: duration({
    internal: true,
    default: 2 * SECOND,
    min: 50,
    max: MINUTE,
    about: 'How often a process renews its lease, takes free partitions and reports the lag.',
  }),
  kafkaMaxWaitMs: duration({
    internal: true,
    default: 100,
    min: 1,
    max: MINUTE,
    about: 'How long a broker waits for records before it answers an empty fetch.',
  }),
  kafkaFetchBytes: bytes({
    internal: true,
    default: MIB,
    min: KIB,
    max: 64 * MIB,
    about: 'How much of a partition is fetched at a time.',
  }),
};
