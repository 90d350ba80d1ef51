/** Archives and drops in a process of its own, which kills itself before a step: `node archive-child.ts DATABASE ARCHIVE STEP COUNT`. */
import { archiveAll, newRestingPace } from './archive.ts';

const [database = '', url = '', step, count = '1'] = process.argv.slice(2);
let left = Number(count);
const onStep = (now: string): void => {
  if (now === step) left -= 1;
  if (left === 0) process.kill(process.pid, 'SIGKILL');
};
const pace = newRestingPace({ onRest: () => onStep('rest') });
await archiveAll({ url: database }, { url, pace, onStep }, onStep);
