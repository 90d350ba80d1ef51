/**
 * A name server on loopback for tests: answers A and AAAA queries over UDP from a table of functions, so that an answer
 * can change from one query to the next. Implements just enough of RFC 1035 for c-ares.
 */
import { createSocket } from 'node:dgram';
import { isIPv4 } from 'node:net';

/**
 * The answer to a query: addresses of both families, an error, or no answer. `n` counts the queries for this name and
 * type.
 */
export type DnsAnswer = readonly string[] | DnsAlias | 'nxdomain' | 'servfail' | 'silence';
/** A CNAME and the addresses of its target. */
export interface DnsAlias {
  readonly alias: string;
  readonly addresses: readonly string[];
}
export type DnsRecord = DnsAnswer | ((n: number, type: 'A' | 'AAAA') => DnsAnswer);

export interface DnsServer {
  /** For `resolver.setServers`. */
  readonly address: string;
  readonly queries: readonly { readonly name: string; readonly type: 'A' | 'AAAA' }[];
  set(name: string, record: DnsRecord): void;
  close(): Promise<void>;
}

const TYPES = new Map<number, 'A' | 'AAAA'>([
  [1, 'A'],
  [28, 'AAAA'],
]);
const RCODES = { nxdomain: 3, servfail: 2 } as const;

export async function startDnsServer(
  records: Record<string, DnsRecord> = {},
  { host = '127.0.0.1', port = 0 } = {},
): Promise<DnsServer> {
  const table = new Map(Object.entries(records));
  const counts = new Map<string, number>();
  const queries: { name: string; type: 'A' | 'AAAA' }[] = [];
  const socket = createSocket('udp4');

  socket.on('message', (query, from) => {
    const { name, type, end } = parseQuestion(query);
    if (type === undefined) return;
    queries.push({ name, type });
    const record = table.get(name) ?? 'nxdomain';
    const countKey = `${name} ${type}`;
    const n = counts.get(countKey) ?? 0;
    counts.set(countKey, n + 1);
    const answer = typeof record === 'function' ? record(n, type) : record;
    if (answer === 'silence') return;
    socket.send(respond(query, end, type, answer), from.port, from.address);
  });

  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.bind(port, host, resolve);
  });
  return {
    address: `127.0.0.1:${socket.address().port}`,
    queries,
    set: (name, record) => {
      table.set(name, record);
    },
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

function parseQuestion(query: Buffer): { name: string; type: 'A' | 'AAAA' | undefined; end: number } {
  const labels: string[] = [];
  let at = 12;
  while (query[at] !== 0) {
    const length = query[at]!;
    labels.push(query.toString('ascii', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: TYPES.get(query.readUInt16BE(at + 1)), end: at + 5 };
}

function respond(
  query: Buffer,
  questionEnd: number,
  type: 'A' | 'AAAA',
  answer: Exclude<DnsAnswer, 'silence'>,
): Buffer {
  const alias = typeof answer === 'string' || !('alias' in answer) ? null : answer.alias;
  const given = typeof answer === 'string' ? [] : 'alias' in answer ? answer.addresses : answer;
  const addresses = given.filter((address) => isIPv4(address) === (type === 'A'));
  const header = Buffer.from(query.subarray(0, 12));
  // A response with recursion, and its response code.
  header.writeUInt16BE(0x8180 | (typeof answer === 'string' ? RCODES[answer] : 0), 2);
  header.writeUInt16BE(addresses.length + (alias === null ? 0 : 1), 6);
  header.writeUInt32BE(0, 8);
  const parts = [header, query.subarray(12, questionEnd)];
  let owner: Buffer = Buffer.from([0xc0, 0x0c]); // the name of the question
  if (alias !== null) {
    const name = nameBytes(alias);
    parts.push(owner, recordOf(5, name));
    owner = name;
  }
  for (const address of addresses) {
    const bytes = type === 'A' ? Buffer.from(address.split('.').map(Number)) : ipv6Bytes(address);
    parts.push(owner, recordOf(type === 'A' ? 1 : 28, bytes));
  }
  return Buffer.concat(parts);
}

function recordOf(type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(10);
  head.writeUInt16BE(type, 0);
  head.writeUInt16BE(1, 2); // Internet
  head.writeUInt32BE(0, 4); // not to be cached
  head.writeUInt16BE(data.length, 8);
  return Buffer.concat([head, data]);
}

function nameBytes(name: string): Buffer {
  const labels = name
    .split('.')
    .map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  return Buffer.concat([...labels, Buffer.from([0])]);
}

function ipv6Bytes(address: string): Buffer {
  // The URL parser returns the canonical form of an address.
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [before = '', after = ''] = canonical.split('::');
  const groups = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
  const head = groups(before);
  const tail = canonical.includes('::') ? groups(after) : [];
  const all = [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail];
  const bytes = Buffer.alloc(16);
  all.forEach((group, index) => {
    bytes.writeUInt16BE(group, index * 2);
  });
  return bytes;
}
