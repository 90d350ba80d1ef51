/** Topics and records on the broker of a test. */
import { randomUUID } from 'node:crypto';
import {
  Admin,
  ConfigResourceTypes,
  IncrementalAlterConfigOperationTypes,
  Producer,
  stringSerializers,
} from '@platformatic/kafka';
import { onTestFinished } from 'vitest';

export interface TestRecord {
  readonly key?: string;
  readonly value: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly partition?: number;
}

/** Creates a topic and returns its name. */
export async function createTopic(
  address: string,
  {
    partitions = 1,
    name = `topic-${randomUUID()}`,
    settings = {},
  }: {
    readonly partitions?: number;
    readonly name?: string;
    readonly settings?: Readonly<Record<string, string>>;
  } = {},
): Promise<string> {
  const admin = new Admin({ clientId: 'test', bootstrapBrokers: [address] });
  try {
    const configs = Object.entries(settings).map(([key, value]) => ({ name: key, value }));
    await admin.createTopics({ topics: [name], partitions, replicas: 1, configs });
  } finally {
    await admin.close();
  }
  return name;
}

export async function deleteTopic(address: string, topic: string): Promise<void> {
  const admin = new Admin({ clientId: 'test', bootstrapBrokers: [address] });
  try {
    await admin.deleteTopics({ topics: [topic] });
  } finally {
    await admin.close();
  }
}

/** Returns the names of all consumer groups. */
export async function listGroups(address: string): Promise<string[]> {
  const admin = new Admin({ clientId: 'test', bootstrapBrokers: [address] });
  try {
    return [...(await admin.listGroups()).keys()];
  } finally {
    await admin.close();
  }
}

/** Changes a setting of a topic. */
export async function changeTopic(
  address: string,
  topic: string,
  setting: { readonly name: string; readonly value: string },
): Promise<void> {
  const admin = new Admin({ clientId: 'test', bootstrapBrokers: [address] });
  try {
    const configs = [{ ...setting, configOperation: IncrementalAlterConfigOperationTypes.SET }];
    await admin.incrementalAlterConfigs({
      resources: [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: topic, configs }],
    });
  } finally {
    await admin.close();
  }
}

/** Deletes the records of partition 0 before an offset, as the retention of the topic would. */
export async function deleteRecords(address: string, topic: string, before: bigint): Promise<void> {
  const admin = new Admin({ clientId: 'test', bootstrapBrokers: [address] });
  try {
    await admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition: 0, offset: before }] }] });
  } finally {
    await admin.close();
  }
}

export type Produce = (records: readonly TestRecord[]) => Promise<void>;

/** A producer for one topic, closed when the test ends. */
export function newProducer(address: string, topic: string): Produce {
  const producer = new Producer({
    clientId: 'test',
    bootstrapBrokers: [address],
    serializers: stringSerializers,
    // Without it, a retry of the client right after the topic was created writes records twice.
    idempotent: true,
    retries: 50,
    retryDelay: 200,
  });
  onTestFinished(() => producer.close(true));
  return async (records) => {
    await producer.send({
      acks: -1,
      messages: records.map(({ key, value, headers, partition }) => ({
        topic,
        value,
        ...(key !== undefined && { key }),
        ...(partition !== undefined && { partition }),
        ...(headers !== undefined && { headers: { ...headers } }),
      })),
    });
  };
}
