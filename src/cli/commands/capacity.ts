import type { Command } from '../command.ts';
import { print } from '../print.ts';
import { UsageError } from '../usage-error.ts';

export const capacity: Command = {
  name: 'capacity',
  summary: 'predict the machines that a load needs',
  usage:
    'posthorn capacity --events-per-day 1e9 [--peak-factor 3] [--fan-out 1.2] [--payload 1kB] [--p50-receiver 200ms] [--failures 2%] [--endpoints 1000] [--keep-days 90] [--cores-per-node 8] [--json]',
  about: `Predicts nodes, cores, memory, PostgreSQL, disk, sockets and the first bottleneck, from costs that were measured
(docs/capacity.md). Connects to nothing. --failures is the share of attempts that fail, --peak-factor the busiest second of the day
over the mean.`,
  options: [
    'events-per-day',
    'peak-factor',
    'fan-out',
    'payload',
    'p50-receiver',
    'failures',
    'endpoints',
    'keep-days',
    'cores-per-node',
  ],
  takesJson: true,
  async run({ options, wantsJson }) {
    const [{ measuredCosts }, { predict }, { readDemand }, { describePrediction }] = await Promise.all([
      import('../capacity/measured-costs.ts'),
      import('../capacity/model.ts'),
      import('../capacity/read-demand.ts'),
      import('../capacity/report.ts'),
    ]);
    if (options['events-per-day'] === undefined) throw new UsageError(`Usage: ${capacity.usage}`);
    const demand = readDemand(options);
    const prediction = predict(demand, measuredCosts);
    print(
      wantsJson
        ? JSON.stringify({ demand, prediction }, null, 2)
        : describePrediction(demand, prediction, measuredCosts),
    );
    return 0;
  },
};
