import { systemClock } from '../../src/domain/clock.ts';
import { KafkaEventLog } from '../../src/kafka/index.ts';
import { ACCEPT_TOPIC, SimulatedKafka } from '../simulation/simulated-kafka.ts';
import { Process, Random } from '../simulation/virtual-time.ts';
import { calmWeather } from '../simulation/weather.ts';
import { DEPLOYMENT, describeEventLog } from './event-log.ts';

describeEventLog('memory', { skip: false }, async () => {
  const weather = calmWeather(new Random(1));
  const time = {
    now: systemClock.now,
    after: (ms: number, _owner: Process | null, task: () => void) => systemClock.after(ms, task),
  };
  const kafka = new SimulatedKafka(time, () => weather);
  return {
    topic: ACCEPT_TOPIC,
    async openLog() {
      const connect = async () => kafka.newWriter(new Process('writer'));
      const onProblem = (): void => {};
      const log = new KafkaEventLog({ connect, deployment: DEPLOYMENT, clock: systemClock, onProblem });
      await log.start();
      return log;
    },
    openReader: async () => kafka.newReader(new Process('reader')),
    close: async () => {},
  };
});
