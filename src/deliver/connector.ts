/**
 * Opens connections through the guard against server-side request forgery: resolves once, vets every address, and
 * connects only to a vetted address, directly or through the proxy. TLS still verifies the host name of the URL. Every
 * new socket comes from here, also after a redirect.
 *
 *   resolve ─▶ vet ─▶ tcp (or tunnel) ─▶ tls ─▶ done
 *
 * One timeout covers all stages.
 */
import { isIP, connect as netConnect, type Socket } from 'node:net';
import { createSecureContext, type SecureContext, connect as tlsConnect } from 'node:tls';
import type { Clock } from '../domain/clock.ts';
import { type ConnectStage, connectError, DeliveryError, shortageOf } from './classify-error.ts';
import type { ClientIdentity } from './client-identity.ts';
import { isLocalhostName } from './egress/check-url.ts';
import type { CompiledPolicy } from './egress/policy.ts';
import { type ForwardProxy, openTunnel } from './proxy.ts';
import type { Lookup } from './resolve.ts';
import { TlsSessions } from './tls-sessions.ts';

export interface Target {
  readonly tls: boolean;
  /** Name or address, without brackets. */
  readonly host: string;
  readonly port: number;
  /** The client certificate to present if the receiver asks for one. */
  readonly identity: ClientIdentity | null;
}

/** How long the stages took. Null: the stage was not needed. */
export interface ConnectTimes {
  dnsMs: number | null;
  connectMs: number | null;
  tlsMs: number | null;
}

export type CertificateAuthorities = string | Buffer | (string | Buffer)[];

export interface ConnectorOptions {
  readonly policy: CompiledPolicy;
  readonly lookup: Lookup;
  readonly clock: Clock;
  readonly connectTimeoutMs: number;
  readonly proxy: ForwardProxy | null;
  readonly ca: CertificateAuthorities | null;
  /** A name with a forbidden address fails like one that does not resolve, so that tenants cannot explore internal names. */
  readonly hidesForbiddenNames: boolean;
}

export type ConnectCallback = (
  error: DeliveryError | null,
  socket: Socket | null,
  times: ConnectTimes,
) => void;

/** Starts connecting and calls `done` once, unless the returned function cancels first. */
export type Connector = (target: Target, done: ConnectCallback) => () => void;

/**
 * TLS 1.3 and ECDHE. Without DHE, because the receiver chooses its parameters: with 10,000 bits, one handshake takes
 * 400 ms of this process, before the certificate is checked.
 */
const CIPHERS = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE+AESGCM',
  'ECDHE+CHACHA20',
  'ECDHE+AES',
  '!aNULL',
  '!PSK',
].join(':');
const LOOPBACK = ['127.0.0.1', '::1'];
const ignore = (): void => {};

/** Shared by all connections. */
interface Shared extends ConnectorOptions {
  readonly sessions: TlsSessions;
  /** Cached per identity, because a context per connection would load the trust store each time. */
  secureContext(identity: ClientIdentity | null): SecureContext;
}

export function createConnector(options: ConnectorOptions): Connector {
  let anonymous: SecureContext | null = null;
  const identified = new WeakMap<ClientIdentity, SecureContext>();
  const common = { ciphers: CIPHERS, ...(options.ca !== null && { ca: options.ca }) };
  const shared: Shared = {
    ...options,
    sessions: new TlsSessions(),
    secureContext(identity) {
      if (identity === null) {
        anonymous ??= createSecureContext(common);
        return anonymous;
      }
      let context = identified.get(identity);
      if (context === undefined) {
        const { cert, key, ca } = identity.certificate;
        context = createSecureContext({ ...common, cert, key, ...(ca !== null && { ca }) });
        identified.set(identity, context);
      }
      return context;
    },
  };
  return (target, done) => {
    const attempt = new ConnectionAttempt(shared, target, done);
    attempt.start();
    return () => attempt.cancel();
  };
}

class ConnectionAttempt {
  readonly #shared: Shared;
  readonly #target: Target;
  readonly #done: ConnectCallback;
  readonly #times: ConnectTimes = { dnsMs: null, connectMs: null, tlsMs: null };
  #stage: ConnectStage = 'dns';
  #stageStart: number;
  #socket: Socket | null = null;
  #finished = false;
  #cancelTimeout: () => void = ignore;

  constructor(shared: Shared, target: Target, done: ConnectCallback) {
    this.#shared = shared;
    this.#target = target;
    this.#done = done;
    this.#stageStart = shared.clock.monotonic();
  }

  start(): void {
    const { clock, connectTimeoutMs } = this.#shared;
    this.#cancelTimeout = clock.after(connectTimeoutMs, () =>
      this.#finish(new DeliveryError(this.#stage === 'dns' ? 'dns_failed' : 'connect_timeout')),
    );
    try {
      this.#resolve();
    } catch (error) {
      this.#fail(error);
    }
  }

  cancel(): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#cancelTimeout();
    this.#socket?.on('error', ignore).destroy();
  }

  #resolve(): void {
    const { host } = this.#target;
    const { policy, lookup } = this.#shared;
    if (isIP(host) !== 0) {
      this.#vet([host]);
    } else if (isLocalhostName(host)) {
      // RFC 6761: such a name is loopback, without DNS. The operator may have allowed only one family.
      const open = LOOPBACK.filter((address) => policy.permits(address));
      this.#vet(open.length > 0 ? open : LOOPBACK);
    } else {
      lookup(host, (error, addresses) => {
        if (this.#finished) return;
        this.#times.dnsMs = this.#endStage();
        if (error !== null || addresses.length === 0) this.#failName(error);
        else this.#vet(addresses);
      });
    }
  }

  #vet(addresses: readonly string[]): void {
    // One forbidden address is enough: a name that also resolves to an internal address is an attack or a mistake.
    if (addresses.every((address) => this.#shared.policy.permits(address))) this.#openTcp(addresses);
    else if (this.#shared.hidesForbiddenNames && isIP(this.#target.host) === 0) this.#failName(null);
    else this.#finish(new DeliveryError('egress_forbidden'));
  }

  #failName(error: unknown): void {
    if (!this.#shared.hidesForbiddenNames || shortageOf(error) !== null) this.#fail(error);
    else this.#finish(new DeliveryError('dns_failed'));
  }

  #openTcp(vetted: readonly string[]): void {
    const { proxy } = this.#shared;
    const { port } = this.#target;
    this.#stage = proxy === null ? 'tcp' : 'proxy';
    if (proxy !== null) {
      this.#socket = openTunnel(proxy, vetted[0]!, port, (error) =>
        error === null ? this.#onTcpOpen() : this.#finish(error),
      );
      return;
    }
    const several = vetted.map((address) => ({ address, family: isIP(address) }));
    const socket = netConnect(
      vetted.length === 1
        ? { host: vetted[0]!, port, noDelay: true, keepAlive: true }
        : {
            host: this.#target.host,
            port,
            noDelay: true,
            keepAlive: true,
            // Node tries these addresses in turn, and no others.
            autoSelectFamily: true,
            lookup: (_hostname, _options, answer) => answer(null, several),
          },
    );
    this.#socket = socket;
    socket.once('error', this.#fail);
    socket.once('connect', () => this.#onTcpOpen());
  }

  #onTcpOpen(): void {
    if (this.#finished) return;
    this.#times.connectMs = this.#endStage();
    if (this.#target.tls) this.#openTls(this.#socket!);
    else this.#finish(null);
  }

  #openTls(plain: Socket): void {
    const { host, port, identity } = this.#target;
    const { sessions } = this.#shared;
    const sessionKey = identity === null ? `${host}:${port}` : `${host}:${port} ${identity.name}`;
    const session = sessions.get(sessionKey);
    this.#stage = 'tls';
    // The TLS socket also reports the errors of this socket: handle each only once.
    plain.removeListener('error', this.#fail);
    plain.on('error', ignore);
    const secureContext = this.#secureContext();
    if (secureContext === null) return;
    const secure = tlsConnect({
      socket: plain,
      host,
      servername: isIP(host) === 0 ? host : '',
      secureContext,
      ALPNProtocols: ['http/1.1'],
      ...(session === undefined ? {} : { session }),
    });
    this.#socket = secure;
    secure.once('error', this.#fail);
    secure.once('secureConnect', () => {
      this.#times.tlsMs = this.#endStage();
      // Sessions are cached only for peers whose certificate was accepted.
      secure.on('session', (fresh) => sessions.set(sessionKey, fresh));
      this.#finish(null);
    });
  }

  /** Returns null after a failure: a newer OpenSSL may reject a certificate that was valid when it was stored. */
  #secureContext(): SecureContext | null {
    try {
      return this.#shared.secureContext(this.#target.identity);
    } catch (error) {
      this.#fail(error);
      return null;
    }
  }

  #fail = (error: unknown): void => this.#finish(connectError(this.#stage, error));

  #finish(error: DeliveryError | null): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#cancelTimeout();
    const socket = this.#socket;
    socket?.removeListener('error', this.#fail);
    if (error !== null) socket?.on('error', ignore).destroy();
    this.#done(error, error === null ? socket : null, this.#times);
  }

  #endStage(): number {
    const now = this.#shared.clock.monotonic();
    const elapsed = now - this.#stageStart;
    this.#stageStart = now;
    return elapsed;
  }
}
