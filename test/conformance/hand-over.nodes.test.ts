import { NodeLinks, PeerLinks } from '../../src/dispatch/index.ts';
import { systemClock } from '../../src/domain/clock.ts';
import { MemoryPeerDirectory } from '../../src/memory/memory-peer-directory.ts';
import { describeHandOver } from './hand-over.ts';
import { newId } from './support/ids.ts';

describeHandOver('TLS between nodes', async () => {
  const directory = new MemoryPeerDirectory();
  const keys = new Map([['key', Buffer.alloc(32, 1)]]);
  return {
    create() {
      const id = newId();
      const onProblem = () => {};
      const links = new NodeLinks({
        id,
        node: id,
        host: '127.0.0.1',
        listenHost: '127.0.0.1',
        port: 0,
        keys,
        directory,
        clock: systemClock,
        onProblem,
      });
      return new PeerLinks({ id, transports: [links], bus: null, clock: systemClock, onProblem });
    },
    close: async () => {},
  };
});
