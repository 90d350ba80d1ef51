/** Connects this process with the others that may own what it accepts: those of its node, and those of other nodes. */
import { hostname } from 'node:os';
import type { ComposeOptions } from './compose-app.ts';
import { BusLinks, NodeLinks, PeerLinks, type PeerTransport, SiblingSockets } from './dispatch/index.ts';
import { newId } from './domain/ids.ts';
import type { HandOver } from './ports/hand-over.ts';
import type { MessageBus } from './ports/message-bus.ts';
import type { PeerDirectory } from './ports/peer-directory.ts';
import { keyIdOf } from './postgres/secret-box.ts';

type Options = Pick<ComposeOptions, 'config' | 'siblings' | 'clock' | 'onProblem'>;

/** Returns null if this process is alone on its node, and hand-over between nodes is switched off. */
export function createHandOver(
  options: Options,
  { peers, bus }: { readonly peers: PeerDirectory; readonly bus: MessageBus | null },
): HandOver | null {
  const { config, siblings, clock, onProblem } = options;
  const id = bus?.id ?? newId(clock.now());
  const transports: PeerTransport[] = [];
  if (siblings !== undefined) transports.push(new SiblingSockets({ ...siblings, clock, onProblem }));
  if (config.peerListen !== null) {
    const { host, port } = config.peerListen;
    const keys = [config.encryptionKey, ...config.previousEncryptionKeys];
    transports.push(
      new NodeLinks({
        id,
        node: siblings === undefined ? id : `${hostname()} ${siblings.directory}`,
        host: config.peerHost ?? host,
        listenHost: host,
        port,
        keys: new Map(keys.map((key) => [keyIdOf(key), key])),
        directory: peers,
        clock,
        onProblem,
      }),
    );
  }
  if (transports.length === 0 && bus === null) return null;
  return new PeerLinks({ id, transports, bus: bus && new BusLinks(bus), clock, onProblem });
}
