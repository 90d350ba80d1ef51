import { rm } from 'node:fs/promises';
import { openDirectory } from '../../scripts/open-directory.ts';
import { PeerLinks, SiblingSockets } from '../../src/dispatch/index.ts';
import { systemClock } from '../../src/domain/clock.ts';
import { describeHandOver } from './hand-over.ts';
import { newId } from './support/ids.ts';

describeHandOver('sockets', async () => {
  const directory = await openDirectory('posthorn-hand-over-');
  let count = 0;
  return {
    create() {
      count += 1;
      const onProblem = () => {};
      const sockets = new SiblingSockets({ directory, number: count, clock: systemClock, onProblem });
      return new PeerLinks({ id: newId(), transports: [sockets], bus: null, clock: systemClock, onProblem });
    },
    close: () => rm(directory, { recursive: true, force: true }),
  };
});
