/** Returns the settings of a Posthorn with Kafka as the accept log: one broker, and a topic that is named after the database. */
export const backboneSettings = (broker: string, databaseUrl: string): Readonly<Record<string, string>> => ({
  POSTHORN_BACKBONE: 'kafka',
  POSTHORN_KAFKA_BROKERS: broker,
  POSTHORN_KAFKA_ACCEPT_TOPIC: `accept-${new URL(databaseUrl).pathname.slice(1)}`,
  POSTHORN_KAFKA_ACCEPT_PARTITIONS: '4',
  POSTHORN_KAFKA_ACCEPT_REPLICAS: '1',
  POSTHORN_KAFKA_ACCEPT_MIN_INSYNC: '1',
  POSTHORN_KAFKA_RENEW_MS: '200ms',
  POSTHORN_KAFKA_LEASE_MS: '1500ms',
});
