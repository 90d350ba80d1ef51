import type { Command } from '../command.ts';
import { print } from '../print.ts';

export const doctor: Command = {
  name: 'doctor',
  summary: 'check the database, settings, keys and egress, and say what to do',
  usage: 'posthorn doctor [--json] [--database-url postgres://…]',
  about: `Checks configuration, keys, database (version, settings, connections, session, clock, schema, partitions), shards, regions,
disk, DNS, proxy, egress guard and Redis, and changes nothing. ✓ means OK, ! a warning, ✗ a problem that stops Posthorn from
working; with a ✗ the exit code is 1. With DATABASE_URL it checks what \`serve\` would use, otherwise what \`dev\` would
use: an embedded database that does not run is started for the checks and stopped afterwards.`,
  takesJson: true,
  async run({ flags, wantsJson }) {
    // Imported only here, so that `posthorn help` stays fast.
    const [{ examine }, { count, reportJson, reportText }] = await Promise.all([
      import('../doctor/examine.ts'),
      import('../doctor/report.ts'),
    ]);
    const examination = await examine(process.env, flags);
    print(wantsJson ? reportJson(examination) : reportText(examination));
    return count(examination.findings, 'problem') === 0 ? 0 : 1;
  },
};
