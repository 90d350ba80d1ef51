import type { Command } from '../command.ts';
import { print } from '../print.ts';

export const doctor: Command = {
  name: 'doctor',
  summary: 'check database, settings, keys and the way out, and say what to do',
  usage: 'posthorn doctor [--json] [--database-url postgres://…]',
  about: `Looks at configuration, keys, database (version, settings, connections, session, clock, schema, partitions), shards,
disk, DNS, proxy and egress guard; changes nothing. ✓ is all right, ! is worth a look, ✗ keeps Posthorn from doing its
work; the exit code is 1 if there is a ✗. With DATABASE_URL it looks as \`serve\` would, without as \`dev\`: an embedded
database that does not run is started for it and stopped again.`,
  takesJson: true,
  async run({ flags, wantsJson }) {
    // Loaded only here: `posthorn help` should not wait for it.
    const [{ examine }, { count, reportJson, reportText }] = await Promise.all([
      import('../doctor/examine.ts'),
      import('../doctor/report.ts'),
    ]);
    const examination = await examine(process.env, flags);
    print(wantsJson ? reportJson(examination) : reportText(examination));
    return count(examination.findings, 'problem') === 0 ? 0 : 1;
  },
};
