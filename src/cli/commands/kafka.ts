import type { Arguments } from '../arguments.ts';
import type { Command } from '../command.ts';
import { print, printError } from '../print.ts';
import { detailOf, ServerApi } from '../server-api.ts';
import { UsageError } from '../usage-error.ts';

interface Partition {
  readonly topic: string;
  readonly partition: number;
  readonly position: number;
  readonly lag: number;
  readonly waiting: number;
  readonly rejected: number;
  readonly lost: number;
  readonly owner: string | null;
  readonly paused_reason: string | null;
}

interface Rejected {
  readonly id: string;
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly reason: string;
}

const REJECTED = '/v1/sources/kafka/rejected';
const RETRIED_AT_A_TIME = 10_000;
const DISCARDED_AT_A_TIME = 10;

export const kafka: Command = {
  name: 'kafka',
  summary: 'show how far Kafka topics are read, and retry or discard rejected records',
  usage: `posthorn kafka status [--json]
       posthorn kafka rejected [--json]
       posthorn kafka retry [--event evt_…]
       posthorn kafka discard --event evt_… | --topic orders`,
  about: `Asks the server at POSTHORN_PUBLIC_URL, with POSTHORN_ADMIN_KEY or the admin key that \`dev\` has generated. \`rejected\` lists
the records that cannot become events, with the reason. \`retry\` maps one or all of them again, for example after the mapping was
changed. \`discard\` deletes one, or all of a topic. docs/kafka.md explains the rest.`,
  actions: ['status', 'rejected', 'retry', 'discard'],
  options: ['event', 'topic'],
  takesJson: true,
  async run(args) {
    const action = args.positionals[1];
    const { event: id, topic } = args.options;
    if (topic !== undefined && (action !== 'discard' || id !== undefined))
      throw new UsageError(`Usage: ${kafka.usage}`);
    const server = await ServerApi.open(args);
    switch (action) {
      case 'status':
        return showStatus(server, args);
      case 'rejected':
        return showRejected(server, args);
      case 'retry':
        return id === undefined
          ? retryAll(server)
          : change(server, 'POST', `${REJECTED}/${id}/retry`, `${id} will be retried.`);
      case 'discard':
        if (id !== undefined) return change(server, 'DELETE', `${REJECTED}/${id}`, `Discarded ${id}.`);
        if (topic !== undefined) return discardAll(server, topic);
    }
    throw new UsageError(`Usage: ${kafka.usage}`);
  },
};

async function showStatus(server: ServerApi, args: Arguments): Promise<number> {
  const sources = await server.get<{ kafka: { topics: string[]; partitions: Partition[] } }>('/v1/sources');
  const { topics, partitions } = sources.kafka;
  if (args.wantsJson) print(JSON.stringify(sources.kafka, null, 2));
  else if (topics.length === 0 && partitions.length === 0)
    print('POSTHORN_KAFKA_SOURCE_TOPICS is not set: nothing is read from Kafka.');
  else if (partitions.length === 0) print(`Nothing of ${topics.join(', ')} was read yet.`);
  else for (const each of partitions) print(describe(each));
  return 0;
}

function describe(each: Partition): string {
  const facts = [`position ${each.position}`, `lag ${each.lag}`];
  if (each.waiting > 0) facts.push(`${each.waiting} waiting`);
  if (each.rejected > 0) facts.push(`${each.rejected} rejected`);
  if (each.lost > 0) facts.push(`${each.lost} lost`);
  if (each.paused_reason !== null) facts.push(`paused: ${each.paused_reason}`);
  facts.push(each.owner === null ? 'read by nobody' : `read by ${each.owner}`);
  return `${each.topic}/${each.partition}: ${facts.join(', ')}`;
}

async function showRejected(server: ServerApi, args: Arguments): Promise<number> {
  const rejected = await server.list<Rejected>(REJECTED);
  if (args.wantsJson) print(JSON.stringify(rejected, null, 2));
  else if (rejected.length === 0) print('No record was rejected.');
  else
    for (const { id, topic, partition, offset, reason } of rejected)
      print(`${id}  ${topic}/${partition}/${offset}  ${reason}`);
  return 0;
}

async function retryAll(server: ServerApi): Promise<number> {
  let total = 0;
  for (;;) {
    const answer = await server.call('POST', `${REJECTED}/retry`, {});
    if (!answer.ok) throw new UsageError(await detailOf(answer));
    const { count } = (await answer.json()) as { readonly count: number };
    total += count;
    // A record may be rejected again at once, so do not wait for 0.
    if (count < RETRIED_AT_A_TIME) break;
  }
  print(`${countRecords(total)} will be retried.`);
  return 0;
}

/** Discards each record by its own call, so that the audit log names it. */
async function discardAll(server: ServerApi, topic: string): Promise<number> {
  const rejected = (await server.list<Rejected>(REJECTED)).filter((each) => each.topic === topic);
  let count = 0;
  for (let from = 0; from < rejected.length; from += DISCARDED_AT_A_TIME) {
    const some = rejected.slice(from, from + DISCARDED_AT_A_TIME);
    const answers = await Promise.all(some.map(({ id }) => server.call('DELETE', `${REJECTED}/${id}`)));
    for (const answer of answers) {
      if (answer.ok) count += 1;
      // Another operator may have retried or discarded it meanwhile.
      else if (answer.status !== 404) throw new UsageError(await detailOf(answer));
    }
  }
  print(`Discarded ${countRecords(count)} of ${topic}.`);
  return 0;
}

const countRecords = (count: number): string => (count === 1 ? '1 record' : `${count} records`);

async function change(server: ServerApi, method: string, address: string, done: string): Promise<number> {
  const answer = await server.call(method, address);
  if (!answer.ok) {
    printError(await detailOf(answer));
    return 1;
  }
  print(done);
  return 0;
}
