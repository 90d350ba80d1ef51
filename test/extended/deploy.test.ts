/** Checks the files of ops/ with the linters of their tools. Does not run Docker or Kubernetes. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { namedSettings } from '../../src/config/index.ts';
import { needs } from '../support/needs.ts';

const run = promisify(execFile);
const root = new URL('../../', import.meta.url).pathname;
const read = (file: string): Promise<string> => readFile(path.join(root, file), 'utf8');

function missing(tool: string): string | null {
  try {
    execFileSync('sh', ['-c', `command -v ${tool}`], { stdio: 'ignore' });
    return null;
  } catch {
    return `${tool} is not installed`;
  }
}

const CHART = 'ops/helm/posthorn';
const EVERYTHING_ON = [
  'api.autoscaling.enabled=true',
  'worker.keda.enabled=true',
  'serviceMonitor.enabled=true',
  'ingress.enabled=true',
  'ingress.host=webhooks.example.com',
  'settings.POSTHORN_LOG_LEVEL=debug',
].flatMap((value) => ['--set', value]);

async function renderChart(...options: string[]): Promise<string> {
  const { stdout } = await run('helm', ['template', 'x', CHART, '--kube-version', '1.31.0', ...options], {
    cwd: root,
  });
  return stdout;
}

test.for([
  'compose.yaml',
  'ops/posthorn.env.example',
  'ops/systemd/posthorn.service',
  `${CHART}/values.yaml`,
  `${CHART}/templates/_helpers.tpl`,
  'Dockerfile',
])('every setting that %s names exists', async (file) => {
  const known = new Set(namedSettings.map(({ env }) => env));
  const named = (await read(file)).match(/\bPOSTHORN_[A-Z_]+\b/g) ?? [];
  expect(named.filter((name) => !known.has(name))).toEqual([]);
});

test('the chart has the version of the package', async () => {
  const { version } = JSON.parse(await read('package.json'));
  expect(await read(`${CHART}/Chart.yaml`)).toMatch(`appVersion: ${version}\n`);
});

test('hadolint finds nothing in the Dockerfile', needs(missing('hadolint')), async () => {
  const { stdout } = await run('hadolint', ['Dockerfile'], { cwd: root });
  expect(stdout).toBe('');
});

test('systemd accepts the unit', needs(missing('systemd-analyze')), async () => {
  const { stderr } = await run('systemd-analyze', ['verify', 'ops/systemd/posthorn.service'], { cwd: root });
  expect(stderr.split('\n').filter((line) => line.includes('posthorn.service'))).toEqual([]);
});

describe('the Helm chart', needs(missing('helm')), () => {
  test('passes helm lint', async () => {
    await run('helm', ['lint', '--strict', CHART], { cwd: root });
  });

  test('runs API and workers in separate deployments, with probes and a migration job', async () => {
    const manifests = await renderChart();
    expect(manifests).toContain('args: [serve, --role, api]');
    expect(manifests).toContain('args: [serve, --role, worker]');
    expect(manifests).toContain('args: [migrate]');
    expect(manifests.match(/path: \/readyz/g)).toHaveLength(2);
    expect(manifests.match(/kind: PodDisruptionBudget/g)).toHaveLength(2);
  });

  test('sets no number of replicas if there is an autoscaler', async () => {
    expect(await renderChart()).toMatch(/replicas: 2/);
    expect(await renderChart(...EVERYTHING_ON)).not.toMatch(/^ {2}replicas:/m);
  });

  test('refuses values that its schema does not know', async () => {
    await expect(renderChart('--set', 'api.replica=3')).rejects.toThrow(/replica/);
  });

  test('renders manifests that Kubernetes accepts', needs(missing('kubernetes-validate')), async () => {
    const directory = await mkdtemp(path.join(tmpdir(), 'posthorn-chart-'));
    try {
      const file = path.join(directory, 'all.yaml');
      await writeFile(file, await renderChart(...EVERYTHING_ON));
      await run('kubernetes-validate', ['--strict', file]);
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
