import { describe, expect, expectTypeOf, it } from 'vitest';
import {
  type Config,
  ConfigError,
  describeConfig,
  loadConfig,
  maskedChanges,
  maskedConfig,
  retentionOf,
  withListeningPort,
} from './index.ts';
import { defaultOf } from './load.ts';
import { namedSettings } from './names.ts';
import { sections, settings } from './settings.ts';

const KEY = Buffer.alloc(32, 7).toString('base64');

function problemsOf(sources: Partial<Parameters<typeof loadConfig>[0]>): string[] {
  try {
    loadConfig({ mode: 'serve', env: {}, ...sources });
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((problem) => problem.message);
    throw error;
  }
  return [];
}

describe('loadConfig', () => {
  it('has a default for everything', () => {
    const config = loadConfig({ mode: 'serve', env: {} });
    expect(config).toMatchObject({
      mode: 'serve',
      port: 8787,
      host: '127.0.0.1',
      databaseUrl: null,
      dataDir: './.posthorn',
      publicUrl: 'http://127.0.0.1:8787',
      heartbeatMs: 300,
      maxEventBytes: 262_144,
      egressAllow: [],
      egressHttps: 'required',
    });
    expect(Object.keys(config)).toEqual(expect.arrayContaining(Object.keys(settings)));
  });

  it('is frozen', () => {
    expect(Object.isFrozen(loadConfig({ mode: 'dev', env: {} }))).toBe(true);
  });

  it('has types that are derived from the table', () => {
    expectTypeOf<Config['port']>().toEqualTypeOf<number>();
    expectTypeOf<Config['databaseUrl']>().toEqualTypeOf<string | null>();
    expectTypeOf<Config['encryptionKey']>().toEqualTypeOf<Buffer | null>();
    expectTypeOf<Config['role']>().toEqualTypeOf<'all' | 'api' | 'worker'>();
    expectTypeOf<Config['egressAllow']>().toEqualTypeOf<readonly string[]>();
    expectTypeOf<Config['egressHttps']>().toEqualTypeOf<'required' | 'except-loopback' | 'optional'>();
    expectTypeOf<Config['publicUrl']>().toEqualTypeOf<string>();
  });

  it('allows loopback and its http in dev only', () => {
    expect(loadConfig({ mode: 'dev', env: {} })).toMatchObject({
      egressAllow: ['127.0.0.0/8', '::1/128'],
      egressHttps: 'except-loopback',
    });
  });

  it('reads the environment, and flags take precedence', () => {
    const env = { PORT: '1', HOST: 'localhost', POSTHORN_SWEEP_MS: '2s' };
    expect(loadConfig({ mode: 'dev', env })).toMatchObject({ port: 1, host: 'localhost', sweepMs: 2000 });
    expect(loadConfig({ mode: 'dev', env, flags: { port: '2', 'sweep-ms': undefined } })).toMatchObject({
      port: 2,
      sweepMs: 2000,
    });
  });

  it('treats an empty or blank variable as unset', () => {
    expect(loadConfig({ mode: 'dev', env: { PORT: '', HOST: '  ', DATABASE_URL: '' } })).toMatchObject({
      port: 8787,
      host: '127.0.0.1',
      databaseUrl: null,
    });
  });

  it('does not treat an empty flag as unset', () => {
    expect(problemsOf({ flags: { port: '' } })).toEqual([
      '--port is "". Allowed: a whole number from 0 to 65535.',
    ]);
  });

  it('reports all invalid values at once, by the name that was used, with the allowed values', () => {
    const problems = problemsOf({
      env: { PORT: 'http', POSTHORN_SWEEP_MS: 'soon', POSTHORN_ROLE: 'boss' },
      flags: { processes: '0' },
    });
    expect(problems).toHaveLength(4);
    expect(problems[0]).toBe('PORT is "http". Allowed: a whole number from 0 to 65535.');
    expect(problems[1]).toBe('POSTHORN_ROLE is "boss". Allowed: one of all, api, worker.');
    expect(problems[2]).toBe('--processes is "0". Allowed: a whole number from 1 to 128.');
    expect(problems[3]).toMatch(/^POSTHORN_SWEEP_MS is "soon". Allowed: a duration from 10ms to 1h/);
  });

  it('lists all problems in the message of the error', () => {
    expect(() => loadConfig({ mode: 'dev', env: { PORT: 'x', POSTHORN_ROLE: 'y' } })).toThrow(
      /\(2 problems\):\n {2}PORT.*\n {2}POSTHORN_ROLE/,
    );
  });

  it('never shows an invalid secret in its error message', () => {
    const problems = problemsOf({
      env: {
        POSTHORN_ADMIN_KEY: 'hunter2',
        POSTHORN_ENCRYPTION_KEY: 'not-a-key',
        POSTHORN_PREVIOUS_ENCRYPTION_KEYS: `${KEY},oops-a-key`,
        DATABASE_URL: 'mysql://root:pa@ss#word@db/x',
        POSTHORN_EGRESS_PROXY: 'socks://me:sesame@proxy',
      },
    });
    expect(problems).toHaveLength(5);
    expect(problems.join()).not.toMatch(/hunter2|not-a-key|oops|ss#word|sesame|BwcH/);
    expect(problems.join()).toContain('POSTHORN_ADMIN_KEY is **** (7 characters)');
    expect(problems.join()).toContain('"mysql://root:****@db/x"');
  });

  it('truncates a very long value', () => {
    expect(problemsOf({ env: { PORT: '9'.repeat(5000) } })[0]!.length).toBeLessThan(250);
  });

  it('refuses unknown flags and suggests the nearest', () => {
    expect(problemsOf({ flags: { prot: '1' } })).toEqual(['--prot is not a setting. Did you mean --port?']);
    expect(problemsOf({ flags: { 'quite-something-else': '1' } })).toEqual([
      '--quite-something-else is not a setting.',
    ]);
  });

  it('warns about unknown variables, but only if they start with POSTHORN_', () => {
    const warnings: string[] = [];
    loadConfig({
      mode: 'dev',
      env: { POSTHORN_SWEEP_SM: '1', POSTHORN_PORT: '1', PATH: '/bin', POSTHORN_ROLE: 'all' },
      onWarning: (message) => warnings.push(message),
    });
    expect(warnings).toEqual([
      'POSTHORN_SWEEP_SM is not a setting of Posthorn and has no effect. Did you mean POSTHORN_SWEEP_MS?',
      expect.stringMatching(/^POSTHORN_PORT is not a setting of Posthorn and has no effect\./),
    ]);
  });

  it('accepts the old name of the retention of the audit log, with a warning', () => {
    const warnings: string[] = [];
    const config = loadConfig({
      mode: 'dev',
      env: { POSTHORN_AUDIT_RETENTION_MS: '48h' },
      onWarning: (message) => warnings.push(message),
    });
    expect(warnings).toEqual([
      'POSTHORN_AUDIT_RETENTION_MS is deprecated. Use POSTHORN_RETENTION_AUDIT (in days) instead.',
    ]);
    expect(retentionOf(config).audit).toBe(2);
  });

  it.each([
    ['127.0.0.1', 'http://127.0.0.1:80'],
    ['0.0.0.0', 'http://127.0.0.1:80'],
    ['::', 'http://[::1]:80'],
    ['::1', 'http://[::1]:80'],
    ['hooks.internal', 'http://hooks.internal:80'],
  ])('derives the public URL from host %s', (host, expected) => {
    expect(loadConfig({ mode: 'dev', env: { HOST: host, PORT: '80' } }).publicUrl).toBe(expected);
  });

  it('replaces port 0 in the derived public URL by the actual port', () => {
    const derived = loadConfig({ mode: 'dev', env: { PORT: '0' } });
    expect(withListeningPort(derived, 4321)).toMatchObject({
      port: 4321,
      publicUrl: 'http://127.0.0.1:4321',
    });
    const given = loadConfig({ mode: 'dev', env: { PORT: '0', POSTHORN_PUBLIC_URL: 'https://x.example' } });
    expect(withListeningPort(given, 4321)).toMatchObject({ port: 4321, publicUrl: 'https://x.example' });
  });
});

describe('conditions between settings', () => {
  it.each([
    [
      { POSTHORN_HEARTBEAT_MS: '500ms' },
      'POSTHORN_HEARTBEAT_MS (500ms) must be less than half of POSTHORN_PROOF_MS (1s)',
    ],
    [{ POSTHORN_PROOF_MS: '8s' }, 'POSTHORN_PROOF_MS (8s) must be less than POSTHORN_DEAD_AFTER_MS (8s)'],
    [
      { POSTHORN_MAX_EVENT_BYTES: '11MiB' },
      'POSTHORN_MAX_EVENT_BYTES (11MiB) must not be larger than POSTHORN_MAX_BATCH_BYTES (10MiB)',
    ],
    [
      { POSTHORN_ACCEPT_QUEUE_BYTES: '1MiB' },
      'POSTHORN_MAX_BATCH_BYTES (10MiB) must not be larger than POSTHORN_ACCEPT_QUEUE_BYTES (1MiB)',
    ],
    [
      { POSTHORN_LANE_BUDGET_ITEMS: '100' },
      'POSTHORN_LANE_ITEMS (200) must not be larger than POSTHORN_LANE_BUDGET_ITEMS (100)',
    ],
    [
      { POSTHORN_LANE_BUDGET_BYTES: '64KiB' },
      'POSTHORN_MAX_EVENT_BYTES (256KiB) must not be larger than POSTHORN_LANE_BUDGET_BYTES (64KiB)',
    ],
  ])('%j', (env, message) => {
    expect(problemsOf({ env })).toEqual([message]);
  });

  it('names the flag if the flag was used', () => {
    expect(problemsOf({ flags: { 'heartbeat-ms': '1s' } })[0]).toMatch(
      /^--heartbeat-ms \(1s\) must .* POSTHORN_PROOF_MS/,
    );
  });

  it('skips a condition if one of its settings is invalid', () => {
    expect(problemsOf({ env: { POSTHORN_HEARTBEAT_MS: 'often' } })).toHaveLength(1);
  });

  it('refuses processes and roles in dev', () => {
    expect(problemsOf({ mode: 'dev', env: { POSTHORN_PROCESSES: '2' } })[0]).toMatch(
      /POSTHORN_PROCESSES is for `posthorn serve`/,
    );
    expect(problemsOf({ mode: 'dev', env: { POSTHORN_ROLE: 'api' } })[0]).toMatch(
      /POSTHORN_ROLE is for `posthorn serve`/,
    );
  });

  it('requires a fixed port if processes share it', () => {
    expect(problemsOf({ env: { POSTHORN_PROCESSES: '2', PORT: '0' } })).toHaveLength(1);
    expect(problemsOf({ env: { POSTHORN_PROCESSES: '2', PORT: '0', POSTHORN_ROLE: 'worker' } })).toEqual([]);
  });
});

describe('describeConfig', () => {
  const config = loadConfig({
    mode: 'serve',
    env: {
      POSTHORN_ADMIN_KEY: 'phk_do-not-show-this',
      POSTHORN_ENCRYPTION_KEY: KEY,
      POSTHORN_PREVIOUS_ENCRYPTION_KEYS: KEY,
      DATABASE_URL: 'postgres://app:s3cret@db:5432/posthorn?sslmode=require',
      POSTHORN_EGRESS_PROXY: 'http://me:sesame@proxy:3128',
      POSTHORN_REDIS_URL: 'rediss://:mellon@redis:6379',
    },
  });

  it('has a line for every setting, with secrets masked', () => {
    const lines = describeConfig(config);
    expect(lines).toHaveLength(namedSettings.length);
    expect(lines.join('\n')).not.toMatch(/do-not-show|s3cret|sesame|mellon|BwcH|,7,7/);
    expect(lines).toContainEqual(expect.stringMatching(/^POSTHORN_ADMIN_KEY +\*\*\*\*$/));
    expect(lines).toContainEqual(
      expect.stringMatching(/^DATABASE_URL +postgres:\/\/app:\*\*\*\*@db:5432\/posthorn\?sslmode=require$/),
    );
    expect(lines).toContainEqual(expect.stringMatching(/^POSTHORN_DRAIN_MS +20s$/));
  });

  it('shows which secrets are not set', () => {
    const bare = maskedConfig(loadConfig({ mode: 'serve', env: {} }));
    expect(bare).toMatchObject({
      POSTHORN_ADMIN_KEY: 'not set',
      POSTHORN_ENCRYPTION_KEY: 'not set',
      POSTHORN_PREVIOUS_ENCRYPTION_KEYS: 'none',
    });
    expect(maskedConfig(config)).toMatchObject({
      POSTHORN_ADMIN_KEY: '****',
      POSTHORN_PREVIOUS_ENCRYPTION_KEYS: '****',
    });
  });
});

describe('maskedChanges', () => {
  it('has only the settings that differ from the defaults, with secrets masked', () => {
    expect(maskedChanges(loadConfig({ mode: 'dev', env: {} }))).toEqual({});
    const env = { PORT: '8788', POSTHORN_SWEEP_MS: '5s', POSTHORN_ADMIN_KEY: 'phk_do-not-show-this' };
    expect(maskedChanges(loadConfig({ mode: 'dev', env }))).toEqual({
      PORT: '8788',
      POSTHORN_PUBLIC_URL: 'http://127.0.0.1:8788',
      POSTHORN_ADMIN_KEY: '****',
    });
  });
});

describe('the table', () => {
  it('gives every setting a unique name', () => {
    for (const name of ['env', 'flag', 'key'] as const) {
      const names = namedSettings.map((entry) => entry[name]);
      expect(new Set(names).size).toBe(names.length);
    }
  });

  it('derives the variable and the flag from the key', () => {
    expect(namedSettings.find((entry) => entry.key === 'deadAfterMs')).toMatchObject({
      env: 'POSTHORN_DEAD_AFTER_MS',
      flag: 'dead-after-ms',
    });
  });

  it('has every setting in exactly one section', () => {
    const inSections = Object.values(sections).flatMap((section) => Object.keys(section));
    expect(inSections.toSorted()).toEqual(Object.keys(settings).toSorted());
  });

  it.each(namedSettings.map((entry) => [entry.env, entry] as const))(
    '%s: its defaults are allowed values',
    (_, { setting }) => {
      for (const mode of ['dev', 'serve'] as const) {
        const value = defaultOf(setting, mode);
        if (value === null || (Array.isArray(value) && value.length === 0)) continue;
        expect(setting.read(setting.show(value))).toEqual(value);
      }
    },
  );

  it('has units in the names of durations and sizes', () => {
    for (const { key, setting } of namedSettings) {
      if (setting.allowed.startsWith('a duration')) expect(key).toMatch(/Ms$/);
      if (setting.allowed.startsWith('a size')) expect(key).toMatch(/Bytes$/);
    }
  });
});
