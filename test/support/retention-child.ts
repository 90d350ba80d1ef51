/** Runs retention in a process of its own, which kills itself before a step: `node retention-child.ts URL STEP COUNT DAYS`. */
import { dropPartitions, keepDays } from './retention.ts';

const [url = '', step, count = '1', days = '30'] = process.argv.slice(2);
let left = Number(count);
await dropPartitions(
  { url },
  {
    days: keepDays(Number(days)),
    onStep: (now) => {
      if (now === step) left -= 1;
      if (left === 0) process.kill(process.pid, 'SIGKILL');
    },
  },
);
