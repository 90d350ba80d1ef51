import { ConfigError, loadConfig } from '../../config/index.ts';
import { createLog } from '../../telemetry/log.ts';
import type { Command } from '../command.ts';
import { migrateDatabase } from '../database.ts';
import { explainError } from '../explain-error.ts';
import { print, printError } from '../print.ts';

export const migrate: Command = {
  name: 'migrate',
  summary: 'bring the schema of the database up to date',
  usage: 'posthorn migrate [--database-url postgres://…]',
  about: `Applies the migrations that the database of DATABASE_URL lacks. \`dev\` and \`serve\` do this when they
start; this command is for deployments whose servers may not change the schema.`,
  async run({ flags }) {
    const config = loadConfig({ mode: 'serve', env: process.env, flags });
    const databaseUrl = config.directDatabaseUrl ?? config.databaseUrl;
    if (databaseUrl === null) {
      throw new ConfigError([
        { name: 'DATABASE_URL', message: 'DATABASE_URL is not set. Set it to the database to migrate.' },
      ]);
    }
    try {
      const applied = await migrateDatabase(databaseUrl, createLog(config));
      print(applied.length === 0 ? 'The schema is up to date.' : `Applied: ${applied.join(', ')}`);
      return 0;
    } catch (error) {
      const explanation = explainError(error, { databaseUrl });
      if (explanation === null) throw error;
      printError(explanation.message);
      return explanation.exitCode;
    }
  },
};
