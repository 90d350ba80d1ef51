/**
 * A server that speaks the protocol of S3 for tests. s3rver stores the objects, but it does not check signatures of version 4. So
 * this server checks signature and checksum of every request before it passes the request on. It can also fail as stores do.
 */
import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import S3rver from 's3rver';
import { checkSignature, type S3Account } from './s3-signature.ts';

/**
 * What the server does instead of answering: an error before it reads the body, an error after it has read the body, or a cut
 * connection in the middle of the body.
 */
export type S3Fault =
  | { readonly status: number; readonly code: string; readonly isEarly?: boolean }
  | 'cut'
  | null;

const LINGER_MS = 500;

export interface S3Request {
  readonly method: string;
  /** Decoded, with the bucket. */
  readonly key: string;
  readonly bytes: number;
}

export class S3Server {
  account: S3Account = {
    accessKeyId: 'AKIATEST',
    secretAccessKey: 'a/secret+of=tests',
    region: 'eu-central-9',
  };
  /** Called for every request with a valid signature. */
  fault: (request: S3Request) => S3Fault = () => null;
  readonly requests: S3Request[] = [];
  readonly #server: Server;
  readonly #inner: Server;
  readonly #folder: string;

  private constructor(server: Server, inner: Server, folder: string) {
    this.#server = server;
    this.#inner = inner;
    this.#folder = folder;
    server.on('request', (incoming: IncomingMessage, answer: ServerResponse) => {
      this.#serve(incoming, answer).catch((error: Error) => answer.destroy(error));
    });
  }

  static async start(...buckets: string[]): Promise<S3Server> {
    const folder = await mkdtemp(path.join(tmpdir(), 'posthorn-s3-'));
    const s3 = new S3rver({
      address: '127.0.0.1',
      port: 0,
      silent: true,
      vhostBuckets: false,
      directory: folder,
      configureBuckets: buckets.map((name) => ({ name, configs: [] })),
    });
    await s3.run();
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new S3Server(server, (s3 as unknown as { httpServer: Server }).httpServer, folder);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** The variables that a client needs. */
  get env(): Record<string, string> {
    const { accessKeyId, secretAccessKey, region } = this.account;
    return {
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${this.port}`,
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      AWS_REGION: region,
    };
  }

  get isListening(): boolean {
    return this.#server.listening;
  }

  /** Refuses connections until `resume`. */
  async vanish(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async resume(port: number): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve));
  }

  async stop(): Promise<void> {
    for (const server of [this.#server, this.#inner]) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #serve(incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = incoming;
    const problem = checkSignature({ method, target: url, headers }, this.account, new Date());
    if (problem !== null)
      return refuse(answer, problem === 'AuthorizationHeaderMalformed' ? 400 : 403, problem);
    const target = bucketIn(headers.host) + url;
    const received = {
      method,
      key: decodeURIComponent(target.split('?')[0]!),
      bytes: Number(headers['content-length'] ?? 0),
    };
    this.requests.push(received);
    const fault = this.fault(received);
    if (fault !== null && fault !== 'cut' && fault.isEarly) {
      refuse(answer, fault.status, fault.code);
      // As servers do that will not read a large body: the client has a moment to read the answer.
      incoming.pause();
      setTimeout(() => incoming.socket.destroy(), LINGER_MS);
      return;
    }
    const chunks: Buffer[] = [];
    let read = 0;
    for await (const chunk of incoming as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      read += chunk.length;
      if (fault === 'cut' && read > 0) return void incoming.socket.destroy();
    }
    if (fault === 'cut') return void incoming.socket.destroy();
    if (fault !== null) return refuse(answer, fault.status, fault.code);
    const body = Buffer.concat(chunks);
    if (createHash('sha256').update(body).digest('hex') !== headers['x-amz-content-sha256'])
      return refuse(answer, 400, 'XAmzContentSHA256Mismatch');
    await this.#passOn(incoming, target, body, answer);
  }

  async #passOn(
    { method, headers }: IncomingMessage,
    target: string,
    body: Buffer,
    answer: ServerResponse,
  ): Promise<void> {
    const { authorization: _, ...others } = headers;
    const { port } = this.#inner.address() as AddressInfo;
    await new Promise<void>((resolve, reject) => {
      request({ host: '127.0.0.1', port, method, path: target, headers: others }, (stored) => {
        answer.writeHead(stored.statusCode!, stored.headers);
        stored.pipe(answer).once('finish', resolve).once('close', resolve);
      })
        .once('error', reject)
        .end(body);
    });
  }
}

/** The bucket in the name of the host, as the start of a path. Empty: the path of the request has it. */
const bucketIn = (host = ''): string => {
  const bucket = /^([a-z-]+)\.store\.test(:|$)/.exec(host)?.[1];
  return bucket === undefined ? '' : `/${bucket}`;
};

function refuse(answer: ServerResponse, status: number, code: string): void {
  answer
    .writeHead(status, { 'content-type': 'application/xml', connection: 'close' })
    .end(
      `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>A test wants it.</Message></Error>`,
    );
}
