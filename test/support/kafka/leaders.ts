/** Which broker leads which partition, and how to change that. */
import {
  Admin,
  alterPartitionReassignmentsV1,
  type ClusterPartitionMetadata,
  Connection,
} from '@platformatic/kafka';

const REQUEST_MS = 5_000;

type ReadPartitions = () => Promise<readonly ClusterPartitionMetadata[]>;

/** Returns the partitions of a topic, in order. */
export async function readPartitions(
  addresses: readonly string[],
  topic: string,
): Promise<readonly ClusterPartitionMetadata[]> {
  const admin = new Admin({ clientId: 'test', bootstrapBrokers: [...addresses], retries: 0 });
  try {
    const { topics } = await admin.metadata({ topics: [topic], forceUpdate: true });
    return topics.get(topic)!.partitions;
  } finally {
    await admin.close();
  }
}

/** Returns true if each partition has a leader and all its copies. */
export const areInSync = (partitions: readonly ClusterPartitionMetadata[]): boolean =>
  partitions.every(({ leader, isr, replicas }) => leader >= 0 && isr.length === replicas.length);

/** Takes each partition from its leader, so that another broker leads it, and gives the former leader its copy back. */
export async function moveLeaders(
  address: string,
  topic: string,
  read: ReadPartitions,
  untilInSync: () => Promise<void>,
): Promise<void> {
  const before = await read();
  const others = before.map(({ leader, replicas }) => replicas.filter((id) => id !== leader));
  await assign(address, topic, others);
  await untilInSync();
  await assign(
    address,
    topic,
    others.map((ids, partition) => [...ids, before[partition]!.leader]),
  );
  await untilInSync();
}

/** Sets which brokers have each partition. The client has this request, but no method for it. */
async function assign(
  address: string,
  topic: string,
  brokersOf: readonly (readonly number[])[],
): Promise<void> {
  const [host, port] = address.split(':');
  const connection = new Connection('test');
  try {
    await connection.connect(host!, Number(port));
    const partitions = brokersOf.map((ids, partitionIndex) => ({ partitionIndex, replicas: [...ids] }));
    await alterPartitionReassignmentsV1.api.async(connection, REQUEST_MS, true, [
      { name: topic, partitions },
    ]);
  } finally {
    await connection.close();
  }
}
