/**
 * Opens one connection through the guard: resolve once, vet every address, connect to a vetted one and to nothing
 * else. TLS still verifies the host name of the URL. Used for every new socket, also after a redirect.
 */
import { isIP, connect as netConnect, type Socket } from 'node:net';
import { createSecureContext, type SecureContext, type TLSSocket, connect as tlsConnect } from 'node:tls';
import type { Clock } from '../domain/clock.ts';
import { type ConnectStage, connectError, DeliveryError } from './classify-error.ts';
import { isLocalhostName } from './egress/check-url.ts';
import type { CompiledPolicy } from './egress/policy.ts';
import type { Lookup } from './resolve.ts';

export interface Target {
  readonly tls: boolean;
  /** Name or address, without brackets. */
  readonly host: string;
  readonly port: number;
}

export interface ConnectTimes {
  dnsMs: number | null;
  connectMs: number | null;
  tlsMs: number | null;
}

export interface ConnectorOptions {
  readonly policy: CompiledPolicy;
  readonly lookup: Lookup;
  readonly clock: Clock;
  readonly connectTimeoutMs: number;
  readonly ca: string | Buffer | readonly (string | Buffer)[] | null;
}

export type Connected = (error: DeliveryError | null, socket: Socket | null, times: ConnectTimes) => void;

export interface TlsSessions {
  session: Buffer | null;
}

/** Starts connecting; `done` is called once, unless the returned function cancels first. */
export type Connector = (target: Target, sessions: TlsSessions, done: Connected) => () => void;

const LOOPBACK = ['127.0.0.1', '::1'];

export function createConnector(options: ConnectorOptions): Connector {
  const { policy, lookup, clock } = options;
  let secureContext: SecureContext | null = null;
  // One context for all: making one per connection parses the trust store again.
  const context = (): SecureContext =>
    (secureContext ??= createSecureContext(
      options.ca === null ? {} : { ca: options.ca as string | Buffer | (string | Buffer)[] },
    ));

  return (target, sessions, done) => {
    const times: ConnectTimes = { dnsMs: null, connectMs: null, tlsMs: null };
    let stage: ConnectStage = 'dns';
    let stageStart = clock.monotonic();
    let socket: Socket | null = null;
    let finished = false;

    const stageOver = (): number => {
      const now = clock.monotonic();
      const elapsed = now - stageStart;
      stageStart = now;
      return elapsed;
    };
    const finish = (error: DeliveryError | null): void => {
      if (finished) return;
      finished = true;
      cancelTimeout();
      if (error !== null) socket?.destroy();
      done(error, error === null ? socket : null, times);
    };
    const fail = (error: unknown): void => finish(connectError(stage, error));

    const cancelTimeout = clock.after(options.connectTimeoutMs, () =>
      finish(new DeliveryError(stage === 'dns' ? 'dns_failed' : 'connect_timeout')),
    );

    const resolved = (error: Error | null, addresses: readonly string[]): void => {
      if (finished) return;
      if (error !== null || addresses.length === 0) {
        fail(error);
        return;
      }
      if (isIP(target.host) === 0) times.dnsMs = stageOver();
      // One forbidden address is enough: a name that also points inside is an attack or a mistake.
      if (addresses.every((address) => policy.permits(address))) openTcp(addresses);
      else finish(new DeliveryError('egress_forbidden'));
    };

    const openTcp = (addresses: readonly string[]): void => {
      stage = 'tcp';
      const vetted = addresses.map((address) => ({ address, family: isIP(address) }));
      socket = netConnect(
        vetted.length === 1
          ? { host: addresses[0]!, port: target.port, noDelay: true, keepAlive: true }
          : {
              host: target.host,
              port: target.port,
              noDelay: true,
              keepAlive: true,
              // Several vetted addresses: Node tries them in turn, and asks nobody but us for them.
              autoSelectFamily: true,
              lookup: (_hostname, _options, answer) => answer(null, vetted as never),
            },
      );
      socket.once('error', fail);
      socket.once('connect', () => {
        times.connectMs = stageOver();
        if (target.tls) openTls(socket!);
        else handOver();
      });
    };

    const openTls = (plain: Socket): void => {
      stage = 'tls';
      const secure: TLSSocket = tlsConnect({
        socket: plain,
        host: target.host,
        servername: isIP(target.host) === 0 ? target.host : '',
        secureContext: context(),
        ALPNProtocols: ['http/1.1'],
        ...(sessions.session === null ? {} : { session: sessions.session }),
      });
      socket = secure;
      secure.once('error', fail);
      secure.once('secureConnect', () => {
        times.tlsMs = stageOver();
        secure.on('session', (session) => {
          sessions.session = session;
        });
        handOver();
      });
    };

    const handOver = (): void => {
      if (finished) return;
      socket!.removeListener('error', fail);
      finish(null);
    };

    const start = (): void => {
      if (isIP(target.host) !== 0) {
        resolved(null, [target.host]);
      } else if (isLocalhostName(target.host)) {
        // RFC 6761: such a name is loopback, and nobody is asked. An operator may have opened one family only.
        const open = LOOPBACK.filter((address) => policy.permits(address));
        resolved(null, open.length > 0 ? open : LOOPBACK);
      } else {
        lookup(target.host, resolved);
      }
    };
    try {
      start();
    } catch (error) {
      fail(error);
    }

    return () => {
      if (finished) return;
      finished = true;
      cancelTimeout();
      socket?.on('error', () => {});
      socket?.destroy();
    };
  };
}
