/** Runs all checks. A failed check does not prevent the others, unless they depend on it. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { type Config, ConfigError, ensureKeys, loadConfig, type Mode, maskUrl } from '../../config/index.ts';
import { findEmbeddedPostgres, startEmbeddedPostgres } from '../../postgres/embedded/index.ts';
import { explainError } from '../explain-error.ts';
import { checkArchive } from './check-archive.ts';
import { checkDatabase, checkSource } from './check-database.ts';
import { checkDisk } from './check-disk.ts';
import { checkNames, checkProxy, judgeGuard } from './check-egress.ts';
import { checkKafka } from './check-kafka.ts';
import { checkRedis } from './check-redis.ts';
import { type Finding, ok, problem, warning } from './finding.ts';
import { judgeKeys, type Keys } from './judge-keys.ts';

export interface Examination {
  readonly mode: Mode;
  readonly database: string;
  readonly findings: Finding[];
}

/** With DATABASE_URL the configuration is checked as `serve` would use it, otherwise as `dev` would. */
export async function examine(
  env: Readonly<Record<string, string | undefined>>,
  flags: Readonly<Record<string, string>>,
): Promise<Examination> {
  const findings: Finding[] = [];
  const hasDatabaseUrl = (flags['database-url'] ?? env.DATABASE_URL?.trim() ?? '') !== '';
  const mode: Mode = hasDatabaseUrl ? 'serve' : 'dev';
  let config: Config;
  try {
    const warnings: string[] = [];
    config = loadConfig({ mode, env, flags, onWarning: (message) => warnings.push(message) });
    findings.push(
      warnings.length === 0
        ? ok('Configuration', `valid for \`posthorn ${mode}\``)
        : warning('Configuration', warnings.join(' '), 'Correct the name, or remove the variable.'),
    );
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const detail = error.problems.map(({ message }) => message).join('; ');
    findings.push(problem('Configuration', `${detail}.`, '`posthorn help settings` lists what is allowed.'));
    return { mode, database: 'not checked', findings };
  }

  const keys = await findKeys(config, findings);
  const { database, urls } =
    config.databaseUrl === null
      ? await examineEmbedded(config, keys, findings)
      : await examineConfigured(config, keys, config.databaseUrl, findings);
  findings.push(judgeGuard(config), await checkNames(urls));
  for (const found of [
    await checkProxy(config.egressProxy),
    await checkSource(config),
    await checkArchive(config),
    await checkRedis(config),
    await checkKafka(config),
  ])
    if (found !== null) findings.push(found);
  return { mode, database, findings };
}

/** Returns the keys that are configured or that `dev` has generated. Generates none. */
async function findKeys(config: Config, findings: Finding[]): Promise<Keys> {
  const hasFile = (name: string) => existsSync(path.join(config.dataDir, name));
  if (config.mode === 'serve' || !(hasFile('admin-key') && hasFile('encryption-key'))) {
    findings.push(judgeKeys(config, config.mode === 'dev' ? config.dataDir : null));
    return config;
  }
  try {
    const keys = await ensureKeys(config, { notice: () => {} });
    findings.push(judgeKeys(keys, null));
    return keys;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const detail = error.problems.map(({ message }) => message).join('; ');
    findings.push(problem('Keys', detail, 'Restore the file from a backup.'));
    return config;
  }
}

async function examineConfigured(config: Config, keys: Keys, url: string, findings: Finding[]) {
  const report = await checkDatabase(config, keys, { url, shouldRun: true });
  findings.push(...report.findings);
  return { database: maskUrl(url), urls: report.urls };
}

async function examineEmbedded(config: Config, keys: Keys, findings: Finding[]) {
  const found = await findEmbeddedPostgres(config.dataDir);
  if (found.state === 'absent') {
    findings.push(ok('Database', 'none yet: `posthorn dev` creates an embedded one'));
    return { database: `embedded, in ${config.dataDir}`, urls: [] };
  }
  findings.push(await checkDisk(found.dir));
  if (found.state === 'running') {
    const report = await checkDatabase(config, keys, { url: found.connectionString, shouldRun: true });
    findings.push(...report.findings);
    return { database: `embedded, running, in ${found.dir}`, urls: report.urls };
  }
  const database = `embedded, started for these checks, in ${found.dir}`;
  try {
    const embedded = await startEmbeddedPostgres({ dataDir: config.dataDir });
    try {
      const report = await checkDatabase(config, keys, { url: embedded.connectionString, shouldRun: false });
      findings.push(...report.findings);
      return { database, urls: report.urls };
    } finally {
      await embedded.stop();
    }
  } catch (error) {
    const [detail = '', ...todo] = (explainError(error, config)?.message ?? String(error)).split('\n');
    findings.push(problem('Database', detail, todo.join(' ') || 'Look at the log of PostgreSQL.'));
    return { database, urls: [] };
  }
}
