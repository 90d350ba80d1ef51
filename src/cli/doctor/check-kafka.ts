import type { Config } from '../../config/index.ts';
import { describeKafka } from '../../create-kafka-source.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

const CHECK = 'Kafka';

/** Null: Kafka is not configured. Without the accept topic no events can be published, so that is a problem. */
export async function checkKafka(config: Config): Promise<Finding | null> {
  if (config.kafkaBrokers.length === 0) return null;
  const isNeeded = config.backbone === 'kafka';
  const brokers = config.kafkaBrokers.join(', ');
  try {
    const { topics, missing, failed } = await describeKafka(config);
    const [refused] = failed;
    if (refused !== undefined)
      return problem(
        CHECK,
        `${brokers}: the topic ${refused.name} cannot be used (${(refused.error as Error).message}).`,
        'Give the user of POSTHORN_KAFKA_USERNAME the rights that docs/kafka.md lists.',
      );
    const absent = missing.filter((name) => name !== config.kafkaAcceptTopic);
    if (absent.length > 0)
      return warning(
        CHECK,
        `${brokers}: there is no topic ${absent.join(', ')}.`,
        'Create it, or correct the name.',
      );
    const found = topics.map(({ name, partitions }) => `${name} (${partitions} partitions)`);
    const created = isNeeded && missing.length > 0 ? ['Posthorn will create the accept topic'] : [];
    return ok(CHECK, `${brokers}: ${[...found, ...created].join(', ') || 'reachable'}`);
  } catch (error) {
    const detail = `${brokers} cannot be used (${(error as Error).message}).`;
    const todo =
      'Start the brokers, or correct POSTHORN_KAFKA_BROKERS and the settings for TLS and passwords.';
    return isNeeded ? problem(CHECK, detail, todo) : warning(CHECK, detail, todo);
  }
}
