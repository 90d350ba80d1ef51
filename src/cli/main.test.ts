import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { namedSettings } from '../config/index.ts';
import { CliBench } from './testing/run-cli.ts';

let bench: CliBench;
beforeEach(async () => {
  bench = await CliBench.make();
});
afterEach(() => bench.clean());

describe('posthorn', () => {
  it.each([['--version'], ['-v'], ['dev', '--version']])('%s %s prints the version', async (...args) => {
    expect(await bench.run(args)).toMatchObject({ code: 0, stdout: `${packageJson.version}\n`, stderr: '' });
  });

  it.each([[[]], [['help']], [['--help']], [['-h']]])('%j lists the commands', async (args) => {
    const { code, stdout, stderr } = await bench.run(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const command of ['dev', 'serve', 'migrate'])
      expect(stdout).toMatch(new RegExp(`^  ${command} `, 'm'));
  });

  it.each([[['help', 'serve']], [['serve', '--help']]])('%j explains the command', async (args) => {
    const { code, stdout } = await bench.run(args);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: posthorn serve \[--role all\|api\|worker\]/);
  });

  it('help settings lists every setting that is not internal, as flag and variable', async () => {
    const { stdout } = await bench.run(['help', 'settings']);
    for (const { flag, env, setting } of namedSettings)
      if (!setting.internal) expect(stdout).toContain(`  --${flag}, ${env}\n`);
  });

  it.each([
    [['dve'], 'There is no command dve. Did you mean dev?'],
    [['help', 'sevre'], 'There is no command sevre. Did you mean serve?'],
    [['dev', '--prot', '1'], 'There is no flag --prot. Did you mean --port?'],
    [['dev', '-x'], 'There is no flag -x.'],
    [['dev', '--port'], '--port needs a value'],
    [['dev', 'please'], 'Unexpected argument: please'],
    [['--port', '1'], 'No command given'],
  ])('%j is a usage error', async (args, message) => {
    const { code, stdout, stderr } = await bench.run(args);
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });
});

describe('posthorn migrate', () => {
  it('needs DATABASE_URL', async () => {
    const { code, stderr } = await bench.run(['migrate']);
    expect(code).toBe(1);
    expect(stderr).toContain('DATABASE_URL is not set');
  });

  it('says when the schema is up to date', async () => {
    const { code, stdout } = await bench.run(['migrate', '--database-url', 'postgres://stand-in/x']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'The schema is up to date.\n' });
    expect(await bench.notes()).toEqual(['migrated']);
  });

  it('explains that the database cannot be reached, without showing its password', async () => {
    const { code, stderr } = await bench.run(['migrate'], {
      DATABASE_URL: `postgres://app:s3cret@127.0.0.1:${bench.port}/x`,
      TEST_REAL_DATABASE: '1',
    });
    expect(code).toBe(1);
    expect(stderr).toContain(
      `PostgreSQL at postgres://app:****@127.0.0.1:${bench.port}/x cannot be reached (ECONNREFUSED)`,
    );
    expect(stderr).not.toMatch(/s3cret|^\s+at /m);
  });
});
