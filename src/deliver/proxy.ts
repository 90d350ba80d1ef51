/**
 * A tunnel through a forward proxy (HTTP CONNECT), for operators whose requests must come from fixed addresses. The proxy
 * gets the vetted address, never the name, so that it resolves nothing itself.
 */
import { isIPv6, connect as netConnect, type Socket } from 'node:net';
import { connectError, DeliveryError } from './classify-error.ts';

export interface ForwardProxy {
  readonly host: string;
  readonly port: number;
  /** The value of Proxy-Authorization, if the URL has credentials. */
  readonly authorization: string | null;
}

export function parseProxyUrl(text: string): ForwardProxy {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol !== 'http:') throw new TypeError('The proxy must be given as http://host:port');
  const user = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  return {
    host: url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname,
    port: url.port === '' ? 80 : Number(url.port),
    authorization: user === ':' ? null : `Basic ${Buffer.from(user).toString('base64')}`,
  };
}

const MAX_ANSWER_BYTES = 16 * 1024;
/** Statuses by which a proxy says that it cannot reach the destination; others mean that the proxy refuses. */
const UNREACHABLE = new Set([502, 503, 504]);

/** Connects to the proxy and calls `done` when the tunnel is open or has failed. The caller owns the returned socket. */
export function openTunnel(
  proxy: ForwardProxy,
  address: string,
  port: number,
  done: (error: DeliveryError | null) => void,
): Socket {
  const socket = netConnect({ host: proxy.host, port: proxy.port, noDelay: true, keepAlive: true });
  let answer: Buffer = Buffer.alloc(0);

  const finish = (error: DeliveryError | null): void => {
    socket.removeListener('data', onData);
    socket.removeListener('error', onError);
    socket.removeListener('end', onEnd);
    if (error !== null) socket.on('error', () => {}).destroy();
    done(error);
  };
  const onError = (error: Error): void => finish(connectError('proxy', error));
  const onEnd = (): void => finish(new DeliveryError('proxy_failed'));
  const onData = (chunk: Buffer): void => {
    answer = answer.length === 0 ? chunk : Buffer.concat([answer, chunk]);
    const end = answer.indexOf('\r\n\r\n');
    if (end === -1) {
      if (answer.length > MAX_ANSWER_BYTES) finish(new DeliveryError('proxy_failed'));
      return;
    }
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(answer.toString('latin1', 0, 16))?.[1] ?? 0);
    if (status < 200 || status > 299) {
      const errorClass = UNREACHABLE.has(status) ? 'connection_failed' : 'proxy_failed';
      finish(new DeliveryError(errorClass, { code: `proxy answered ${status}` }));
      return;
    }
    socket.pause();
    if (answer.length > end + 4) socket.unshift(answer.subarray(end + 4));
    finish(null);
  };

  socket.on('error', onError);
  socket.on('end', onEnd);
  socket.on('data', onData);
  socket.once('connect', () => {
    const authority = `${isIPv6(address) ? `[${address}]` : address}:${port}`;
    const credentials = proxy.authorization === null ? '' : `proxy-authorization: ${proxy.authorization}\r\n`;
    socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n${credentials}\r\n`);
  });
  return socket;
}
