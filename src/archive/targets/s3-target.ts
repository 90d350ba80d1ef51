/**
 * An archive in a bucket of S3 or of a store that speaks its protocol. Files are written to the temporary directory of this machine
 * first: a request needs to know their length and checksum.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { AwsV4Signer } from 'aws4fetch';
import { type Dispatcher, request } from 'undici';
import { ArchiveError, ArchiveFullError } from '../../domain/archive.ts';
import type { ArchiveTarget } from './target.ts';

export interface S3Options {
  readonly url: string;
  readonly bucket: string;
  /** Without slashes around it. */
  readonly prefix: string;
  /** Null: Amazon's endpoint of the region. */
  readonly endpoint: string | null;
  readonly region: string;
  readonly pathStyle: boolean;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | undefined;
}

interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'DELETE';
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly sha256?: string;
  /** Called for each try. */
  readonly body?: () => Readable | string;
  readonly length?: number;
}

const TRIES = 4;
const FIRST_PAUSE_MS = 300;
const ANSWER_WITHIN_MS = 60_000;
const EMPTY_SHA256 = createHash('sha256').digest('hex');
/** The code of an object that does not exist. */
const MISSING = 'NoSuchKey';
const SPOOL_PREFIX = 'posthorn-archive-';

export class S3Target implements ArchiveTarget {
  readonly url: string;
  readonly #options: S3Options;

  constructor(options: S3Options) {
    this.url = options.url;
    this.#options = options;
  }

  async check(): Promise<void> {
    await this.readText('archive.json');
  }

  async spoolPath(): Promise<string> {
    await removeLeftovers();
    return path.join(tmpdir(), `${SPOOL_PREFIX}${process.pid}-${randomUUID()}`);
  }

  async put(name: string, file: string): Promise<void> {
    const hash = createHash('sha256');
    for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
    const { size } = await stat(file);
    const { body } = await this.#send({
      method: 'PUT',
      key: name,
      sha256: hash.digest('hex'),
      length: size,
      body: () => createReadStream(file),
    });
    await body.dump();
    await rm(file, { force: true });
  }

  async putText(name: string, text: string): Promise<void> {
    const { body } = await this.#send({
      method: 'PUT',
      key: name,
      sha256: createHash('sha256').update(text).digest('hex'),
      length: Buffer.byteLength(text),
      body: () => text,
    });
    await body.dump();
  }

  async readText(name: string): Promise<string | null> {
    const answer = await this.#send({ method: 'GET', key: name }, [404]);
    if (answer.statusCode !== 404) return answer.body.text();
    const text = await answer.body.text();
    // Stores answer 404 for a missing bucket too, and some of them for an unknown access key.
    if ((codeIn(text) ?? MISSING) !== MISSING) throw this.#refusal('GET', name, 404, text);
    return null;
  }

  async sizeOf(name: string): Promise<number | null> {
    const { statusCode, headers, body } = await this.#send({ method: 'HEAD', key: name }, [404]);
    await body.dump();
    return statusCode === 404 ? null : Number(headers['content-length']);
  }

  async withFile<T>(name: string, read: (file: string) => Promise<T>): Promise<T> {
    const file = await this.spoolPath();
    try {
      await this.#download(name, file);
      return await read(file);
    } finally {
      await rm(file, { force: true });
    }
  }

  /** Tries again if the connection breaks. */
  async #download(name: string, file: string): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS;
    for (let tries = 1; ; tries += 1) {
      const { body } = await this.#send({ method: 'GET', key: name });
      try {
        await pipeline(body, createWriteStream(file, { mode: 0o600 }));
        return;
      } catch (error) {
        if (tries === TRIES)
          throw new ArchiveError(`The download of ${name} from ${this.url} broke: ${describe(error)}`, {
            cause: error,
          });
      }
      await sleep(pauseMs);
      pauseMs *= 2;
    }
  }

  async list(prefix: string): Promise<string[]> {
    const names: string[] = [];
    const start = this.#keyOf('');
    for (let token: string | null = ''; token !== null; ) {
      const { body } = await this.#send({
        method: 'GET',
        key: '',
        query: {
          'list-type': '2',
          prefix: this.#keyOf(prefix),
          ...(token !== '' && { 'continuation-token': token }),
        },
      });
      const xml = await body.text();
      for (const [, key] of xml.matchAll(/<Key>([^<]*)<\/Key>/g))
        names.push(unescapeXml(key!).slice(start.length));
      token = /<IsTruncated>true/.test(xml)
        ? unescapeXml(/<NextContinuationToken>([^<]*)</.exec(xml)?.[1] ?? '')
        : null;
      if (token === '') token = null;
    }
    return names.sort();
  }

  async remove(name: string): Promise<void> {
    const { body } = await this.#send({ method: 'DELETE', key: name }, [404]);
    await body.dump();
  }

  #keyOf(name: string): string {
    const { prefix } = this.#options;
    return prefix === '' ? name : `${prefix}/${name}`;
  }

  /** Sends a request, again if the store fails. Statuses in `allowed` are returned too. */
  async #send(wanted: S3Request, allowed: readonly number[] = []): Promise<Dispatcher.ResponseData> {
    let pauseMs = FIRST_PAUSE_MS;
    for (let tries = 1; ; tries += 1) {
      const isLast = tries === TRIES;
      try {
        const answer = await this.#sendOnce(wanted);
        const { statusCode } = answer;
        if (statusCode < 300 || allowed.includes(statusCode)) return answer;
        const text = await answer.body.text();
        if (isLast || isFull(statusCode, text) || (statusCode < 500 && statusCode !== 429))
          throw this.#refusal(wanted.method, wanted.key, statusCode, text);
      } catch (error) {
        if (error instanceof ArchiveError) throw error;
        if (isLast)
          throw new ArchiveError(`The archive ${this.url} cannot be reached: ${describe(error)}`, {
            cause: error,
          });
      }
      await sleep(pauseMs);
      pauseMs *= 2;
    }
  }

  async #sendOnce({ method, key, query, sha256, body, length }: S3Request): Promise<Dispatcher.ResponseData> {
    const { region, accessKeyId, secretAccessKey, sessionToken } = this.#options;
    const address = this.#addressOf(key, query);
    const signed = await new AwsV4Signer({
      method,
      url: address,
      headers: { 'x-amz-content-sha256': sha256 ?? EMPTY_SHA256 },
      service: 's3',
      region,
      accessKeyId,
      secretAccessKey,
      ...(sessionToken !== undefined && { sessionToken }),
    }).sign();
    return request(signed.url, {
      method,
      headers: {
        ...Object.fromEntries(signed.headers),
        ...(length !== undefined && { 'content-length': String(length) }),
      },
      ...(body !== undefined && { body: body() }),
      headersTimeout: ANSWER_WITHIN_MS,
      bodyTimeout: ANSWER_WITHIN_MS,
    });
  }

  #addressOf(key: string, query: Readonly<Record<string, string>> = {}): string {
    const { bucket, endpoint, region, pathStyle } = this.#options;
    const base = new URL(endpoint ?? `https://s3.${region}.amazonaws.com`);
    if (!pathStyle) base.host = `${bucket}.${base.host}`;
    // An empty key is the bucket itself.
    const full = key === '' ? '' : this.#keyOf(key);
    const encoded = full.split('/').map(encodeURIComponent).join('/');
    base.pathname = pathStyle ? `/${bucket}/${encoded}` : `/${encoded}`;
    // Not by `searchParams`, which writes a space as `+`: stores differ in how they read it.
    base.search = Object.entries(query)
      .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
      .join('&');
    return base.href;
  }

  #refusal(method: string, key: string, status: number, text: string): ArchiveError {
    const code = codeIn(text) ?? String(status);
    const advice = ADVICE[code] ?? ADVICE[String(status)] ?? '';
    const message = `The archive ${this.url} refuses ${method} ${key} (${status} ${code}).`;
    return isFull(status, text)
      ? new ArchiveFullError(`${message} The store is full, or its quota is used up. Make room.`)
      : new ArchiveError(`${message}${advice}`);
  }
}

const ADVICE: Readonly<Record<string, string>> = {
  NoSuchBucket: ' The bucket does not exist. Create it, or correct POSTHORN_ARCHIVE_URL.',
  InvalidAccessKeyId: ' Check AWS_ACCESS_KEY_ID.',
  XAdminUserNotFound: ' Check AWS_ACCESS_KEY_ID.',
  SignatureDoesNotMatch: ' Check AWS_SECRET_ACCESS_KEY, and AWS_REGION.',
  AuthorizationHeaderMalformed: ' Check AWS_REGION.',
  RequestTimeTooSkewed: ' The clock of this machine or of the store is wrong.',
  SlowDown: ' The store is overloaded.',
  '301': ' The bucket is in another region. Set AWS_REGION.',
  '403': ' The key needs the rights to list the bucket, and to get, put and delete its objects.',
  '404': ' The object is missing.',
};

/** Error codes of Ceph, MinIO and others for a full store. The upload is not repeated at once. */
const FULL = /<Code>(QuotaExceeded|\w*StorageFull|\w*BucketQuotaExceeded|InsufficientStorage\w*)<\/Code>/;
const isFull = (status: number, text: string): boolean => status === 507 || FULL.test(text);

const codeIn = (xml: string): string | null => /<Code>([^<]+)<\/Code>/.exec(xml)?.[1] ?? null;
const describe = (error: unknown): string =>
  (error as { readonly code?: string }).code ?? (error as Error).message;
const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' };

/** Stores write characters by name (`&lt;`) or by number (`&#60;`). */
const unescapeXml = (text: string): string =>
  text.replace(
    /&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi,
    (entity, hex?: string, decimal?: string, name?: string) => {
      if (name !== undefined) return ENTITIES[name] ?? entity;
      return String.fromCodePoint(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16));
    },
  );

/** Files of processes of this machine that were killed. */
async function removeLeftovers(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = /^posthorn-archive-(\d+)-/.exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) await rm(path.join(tmpdir(), name), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
