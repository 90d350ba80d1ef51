import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ServerFacts } from '../../postgres/queries/inspect.ts';
import { createSecretBox } from '../../postgres/secret-box.ts';
import { judgeDisk } from './check-disk.ts';
import { judgeGuard } from './check-egress.ts';
import { type Finding, ok, problem, warning } from './finding.ts';
import { judgeKeys, judgeSecrets } from './judge-keys.ts';
import {
  judgeClock,
  judgeConnections,
  judgeDurability,
  judgeMigrations,
  judgePartitions,
  judgeRegions,
  judgeSession,
  judgeSource,
  judgeStandby,
  judgeVacuum,
  judgeVersion,
  judgeWorkers,
} from './judge-server.ts';
import { reportJson, reportText } from './report.ts';

const server: ServerFacts = {
  versionNumber: 180_004,
  version: '18.4',
  settings: {
    fsync: 'on',
    full_page_writes: 'on',
    synchronous_commit: 'on',
    autovacuum: 'on',
    track_counts: 'on',
    wal_level: 'replica',
    default_transaction_read_only: 'off',
    synchronous_standby_names: '',
  },
  isStandby: false,
  commitsWaiting: 0,
  connectionLimits: [{ of: 'server', allowed: 97, usedByOthers: 7 }],
  now: 0,
};
const withSetting = (name: string, value: string): ServerFacts => ({
  ...server,
  settings: { ...server.settings, [name]: value },
});
const states = (findings: readonly Finding[]) => findings.map(({ state }) => state);

describe('the server', () => {
  it('needs PostgreSQL 15 or later, and the primary', () => {
    expect(judgeVersion(server).state).toBe('ok');
    expect(judgeVersion({ ...server, versionNumber: 140_011, version: '14.11' })).toMatchObject({
      state: 'problem',
      detail: expect.stringContaining('14.11'),
    });
    expect(judgeVersion({ ...server, isStandby: true }).state).toBe('problem');
  });

  it('needs the synchronous standby that its commits wait for', () => {
    const synchronous = withSetting('synchronous_standby_names', 'b');
    expect(states([judgeStandby(server), judgeStandby(synchronous)])).toEqual(['ok', 'ok']);
    expect(judgeStandby({ ...synchronous, commitsWaiting: 2 })).toMatchObject({
      state: 'problem',
      todo: expect.stringContaining('synchronous_standby_names'),
    });
  });

  it('must make commits durable', () => {
    expect(judgeDurability(server).state).toBe('ok');
    expect(judgeDurability(withSetting('fsync', 'off')).todo).toContain('fsync = on');
    expect(judgeDurability(withSetting('default_transaction_read_only', 'on')).state).toBe('problem');
    // Posthorn sets it itself, in every session.
    expect(judgeDurability(withSetting('synchronous_commit', 'off')).state).toBe('ok');
  });

  it('must have autovacuum enabled', () => {
    expect(states([judgeVacuum(server), judgeVacuum(withSetting('autovacuum', 'off'))])).toEqual([
      'ok',
      'problem',
    ]);
  });

  it('must allow enough connections', () => {
    const judge = (processes: number) =>
      judgeConnections(server, { processes, connections: 20 * processes }).state;
    expect([judge(1), judge(3), judge(4), judge(5)]).toEqual(['ok', 'ok', 'warning', 'problem']);
  });

  it('says for how many nodes the connections suffice', () => {
    const judge = (connections: number) => judgeConnections(server, { processes: 2, connections }).detail;
    expect(judge(20)).toBe(
      'up to 20 for this node (2 processes); the server allows 97, of which 90 are free for Posthorn: enough for 4 such nodes',
    );
    expect(judge(50)).toMatch(/: enough for one such node$/);
    expect(judge(80)).toMatch(/: enough for one such node, with few connections left\.$/);
    expect(judge(91)).toMatch(/: not enough for one node\.$/);
  });

  it('of a relay needs wal_level = logical only if the relay follows the log', () => {
    expect(states([judgeSource(server, 'poll'), judgeSource(server, 'cdc')])).toEqual(['ok', 'problem']);
    expect(judgeSource(withSetting('wal_level', 'logical'), 'cdc').state).toBe('ok');
  });

  it('must give Posthorn a session of its own', () => {
    expect(judgeSession({ isOneSession: true, receivesNotifications: true }).state).toBe('ok');
    expect(judgeSession({ isOneSession: true, receivesNotifications: false })).toMatchObject({
      state: 'problem',
      todo: expect.stringContaining('session mode'),
    });
    expect(judgeSession({ isOneSession: false, receivesNotifications: true }).state).toBe('problem');
  });

  it('should have the same time as this machine', () => {
    expect([20, -20, 5_000, -5_000, 90_000].map((ms) => judgeClock(ms).state)).toEqual([
      'ok',
      'ok',
      'warning',
      'warning',
      'problem',
    ]);
    expect(judgeClock(-5_000).detail).toContain('5.0 s behind');
  });
});

describe('the schema', () => {
  const known = ['0001_a.sql', '0002_b.sql'];
  it('may be missing or old, but not newer', () => {
    const judge = (applied: string[] | null, isOwner = true) => judgeMigrations(applied, known, isOwner);
    expect(judge(known).state).toBe('ok');
    expect(judge(null).state).toBe('warning');
    expect(judge(['0001_a.sql'])).toMatchObject({
      state: 'warning',
      detail: expect.stringContaining('0002_b.sql'),
    });
    // This role cannot apply it, so `serve` does not start.
    expect(judge(['0001_a.sql'], false).state).toBe('problem');
    expect(judge([...known, '0003_c.sql'])).toMatchObject({
      state: 'problem',
      detail: expect.stringContaining('0003_c.sql'),
    });
  });

  it('has partitions for the present and the next days', () => {
    const good = { parent: 'events', coversNow: true, aheadMs: 14 * 86_400_000, gaps: 0 };
    expect(judgePartitions([good]).state).toBe('ok');
    expect(judgePartitions([good, { ...good, parent: 'attempts', coversNow: false }])).toMatchObject({
      state: 'problem',
      detail: expect.stringContaining('attempts'),
    });
    expect(judgePartitions([{ ...good, gaps: 1 }]).state).toBe('warning');
    expect(judgePartitions([{ ...good, aheadMs: 3_600_000 }]).state).toBe('warning');
  });
});

describe('shards', () => {
  const worker = { name: 'a', shards: 128, silentMs: 100, stopping: false };
  const judge = (workers: (typeof worker)[], unowned = 0, shouldRun = true) =>
    judgeWorkers({ workers, unowned }, { deadAfterMs: 8_000, shouldRun });
  it('must all be owned by workers that are alive', () => {
    expect(judge([worker, { ...worker, name: 'b' }])).toMatchObject({
      state: 'ok',
      detail: expect.stringContaining('2 workers'),
    });
    expect(judge([worker, { ...worker, name: 'b', silentMs: 60_000 }])).toMatchObject({
      state: 'problem',
      detail: expect.stringContaining('128 of 256'),
    });
    expect(judge([worker], 128).state).toBe('problem');
    expect(judge([], 256).state).toBe('warning');
    expect(judge([], 256, false).state).toBe('ok');
  });
});

describe('regions', () => {
  const region = { name: 'eu', number: 1, workers: 1, isServed: true, isUsed: true };
  it('that endpoints name must have workers', () => {
    expect(judgeRegions([], true).state).toBe('ok');
    expect(judgeRegions([region], true)).toMatchObject({
      state: 'ok',
      detail: expect.stringContaining('eu'),
    });
    expect(judgeRegions([region, { ...region, name: 'us', workers: 0 }], true)).toMatchObject({
      state: 'problem',
      detail: expect.stringContaining('No worker runs in us'),
    });
    expect(judgeRegions([{ ...region, workers: 0, isUsed: false }], true).state).toBe('ok');
    expect(judgeRegions([{ ...region, workers: 0 }], false).state).toBe('ok');
  });
});

describe('keys', () => {
  const encryptionKey = randomBytes(32);
  const keys = { adminKey: 'phk_x', encryptionKey, previousEncryptionKeys: [] };
  const sealed = (key: Buffer, count = 1) => {
    const { keyId, ciphertext } = createSecretBox(key).seal('whsec_x', 'endpoint');
    return { endpointId: 'endpoint', keyId, ciphertext, count };
  };

  it('must be set, unless dev generates them', () => {
    expect(judgeKeys(keys, null).state).toBe('ok');
    expect(judgeKeys({ ...keys, adminKey: null }, null)).toMatchObject({
      state: 'problem',
      detail: expect.stringContaining('POSTHORN_ADMIN_KEY'),
    });
    expect(judgeKeys({ ...keys, encryptionKey: null }, './.posthorn').state).toBe('ok');
  });

  it('must decrypt the stored secrets', () => {
    const other = randomBytes(32);
    expect(judgeSecrets(keys, []).state).toBe('ok');
    expect(judgeSecrets(keys, [sealed(encryptionKey)]).state).toBe('ok');
    expect(judgeSecrets(keys, [sealed(encryptionKey), sealed(other, 3)])).toMatchObject({
      state: 'problem',
      detail: expect.stringContaining('3 encrypted with key'),
    });
    const damaged = { ...sealed(encryptionKey), endpointId: 'another' };
    expect(judgeSecrets(keys, [damaged]).state).toBe('problem');
    expect(judgeSecrets({ ...keys, previousEncryptionKeys: [other] }, [sealed(other)])).toMatchObject({
      state: 'warning',
      todo: expect.stringContaining('rotate-encryption-key'),
    });
    expect(judgeSecrets({ ...keys, encryptionKey: null }, [sealed(other)]).state).toBe('problem');
  });
});

it('the disk should have free space', () => {
  expect([10, 1, 0.1].map((gib) => judgeDisk(gib * 2 ** 30, '/data').state)).toEqual([
    'ok',
    'warning',
    'problem',
  ]);
});

it('in production the egress guard should have no exceptions', () => {
  const strict = { mode: 'serve', egressAllow: [], egressHttps: 'required' } as const;
  expect(judgeGuard(strict).state).toBe('ok');
  expect(judgeGuard({ ...strict, egressAllow: ['10.0.0.0/8'] }).detail).toContain('10.0.0.0/8');
  expect(judgeGuard({ ...strict, egressHttps: 'optional' }).state).toBe('warning');
  expect(judgeGuard({ ...strict, mode: 'dev', egressAllow: ['127.0.0.0/8'] }).state).toBe('ok');
});

it('the report has a line for each check, with what to do below it', () => {
  const findings = [
    ok('Database', 'PostgreSQL 18.4'),
    warning('Clock', 'Late.', 'Set it.'),
    problem('Keys', 'None.', 'Make some.'),
  ];
  const examination = { mode: 'serve', database: 'postgres://…', findings } as const;
  expect(
    reportText({ ...examination, findings: [...findings] }),
  ).toBe(`Posthorn, as \`posthorn serve\` would run it. Database: postgres://…

✓ Database  PostgreSQL 18.4
! Clock     Late.
            → Set it.
✗ Keys      None.
            → Make some.

1 problem, 1 warning.`);
  expect(JSON.parse(reportJson({ ...examination, findings: [...findings] }))).toMatchObject({
    ok: false,
    checks: [{ check: 'Database', state: 'ok' }, { state: 'warning' }, { state: 'problem' }],
  });
});
