/**
 * Connects the processes of different nodes through TLS. Both sides prove that they know the encryption key of the
 * deployment (a pre-shared key, derived from it), so there are no certificates to create and renew. Each process
 * announces its address in the store and connects to all others with a lower id. So two processes share one connection.
 */
import { hkdfSync } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import tls from 'node:tls';
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import type { PeerAddress, PeerDirectory } from '../ports/peer-directory.ts';
import type { PeerTransport } from './peer-links.ts';

export interface NodeLinksOptions {
  /** Identifies this process. */
  readonly id: Uuid;
  readonly node: string;
  /** The address of this node, as others reach it. */
  readonly host: string;
  readonly listenHost: string;
  /** 0: a free port. */
  readonly port: number;
  /** The keys of the deployment by their ids, the current one first. */
  readonly keys: ReadonlyMap<string, Buffer>;
  readonly directory: PeerDirectory;
  readonly clock: Clock;
  readonly onProblem: (what: string, error: unknown) => void;
}

/** Raise this when the messages change: processes with different versions notify each other through the store. */
const WIRE_VERSION = 1;
const SEARCH_INTERVAL_MS = 2_000;
const HANDSHAKE_MS = 5_000;
/** More than the processes of any deployment. Limits the file handles that strangers can take by connecting. */
const MAX_CONNECTIONS = 1_000;
/** With forward secrecy: somebody who learns the key later cannot read what was recorded before. */
const TLS_OPTIONS = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
} as const;

export class NodeLinks implements PeerTransport {
  readonly isWithinNode = false;
  readonly #options: NodeLinksOptions;
  readonly #presharedKeys: ReadonlyMap<string, Buffer>;
  /** The processes that this one is connected or connecting to. */
  readonly #connectedTo = new Set<Uuid>();
  readonly #server: tls.Server;
  #onConnected: (socket: Socket) => void = () => {};
  #cancelSearch: (() => void) | null = null;
  #searching: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(options: NodeLinksOptions) {
    this.#options = options;
    this.#presharedKeys = new Map([...options.keys].map(([id, key]) => [id, derivePresharedKey(key)]));
    this.#server = tls.createServer(
      {
        ...TLS_OPTIONS,
        handshakeTimeout: HANDSHAKE_MS,
        noDelay: true,
        pskCallback: (_socket, keyId) => this.#presharedKeys.get(keyId) ?? null,
      },
      (socket) => this.#onConnected(socket),
    );
    this.#server.maxConnections = MAX_CONNECTIONS;
    this.#server.on('error', (error) => options.onProblem('listen for other nodes', error));
    this.#server.on('tlsClientError', (error, socket) => {
      socket.destroy();
      options.onProblem('let another node connect', error);
    });
  }

  /** If this process cannot listen, reports that and connects to nobody. */
  async start(onConnected: (socket: Socket) => void): Promise<void> {
    this.#onConnected = onConnected;
    const { listenHost, port } = this.#options;
    // Exclusive: otherwise the cluster module would share the port among all children.
    this.#server.listen({ host: listenHost, port, exclusive: true });
    const isListening = await once(this.#server, 'listening').then(
      () => true,
      () => false,
    );
    if (isListening) this.#searchSoon(0);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelSearch?.();
    this.#server.close();
    await this.#searching;
    await this.#options.directory.withdraw(this.#options.id).catch(() => {});
  }

  #searchSoon(delayMs: number): void {
    if (this.#isStopped) return;
    this.#cancelSearch = this.#options.clock.after(delayMs, () => {
      this.#searching = this.#search().finally(() => this.#searchSoon(SEARCH_INTERVAL_MS));
    });
  }

  async #search(): Promise<void> {
    const { id, node, host, directory, onProblem } = this.#options;
    const { port } = this.#server.address() as AddressInfo;
    try {
      const peers = await directory.announce({ id, node, host, port, wireVersion: WIRE_VERSION });
      if (this.#isStopped) return;
      for (const peer of peers) if (peer.id < id && !this.#connectedTo.has(peer.id)) this.#connect(peer);
    } catch (error) {
      onProblem('find the processes of other nodes', error);
    }
  }

  #connect(peer: PeerAddress): void {
    const { onProblem } = this.#options;
    this.#connectedTo.add(peer.id);
    const [identity, psk] = [...this.#presharedKeys][0]!;
    const socket = tls.connect({
      ...TLS_OPTIONS,
      host: peer.host,
      port: peer.port,
      timeout: HANDSHAKE_MS,
      pskCallback: () => ({ psk, identity }),
      // There is no certificate: the handshake fails unless the other side knows the key.
      checkServerIdentity: () => undefined,
    });
    const onError = (error: Error): void =>
      onProblem(`connect to the node at ${peer.host}:${peer.port}`, error);
    socket.once('error', onError);
    socket.once('timeout', () => socket.destroy(new Error('The node does not answer.')));
    socket.once('close', () => this.#connectedTo.delete(peer.id));
    socket.once('secureConnect', () => {
      socket.setTimeout(0);
      socket.setNoDelay(true);
      socket.off('error', onError);
      this.#onConnected(socket);
    });
  }
}

/** A separate key, so that a weakness of this use does not expose the key that seals secrets. */
function derivePresharedKey(key: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), 'posthorn connections between nodes', 32));
}
