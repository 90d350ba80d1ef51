/** Checks the files of ops/ with the linters of their tools. Does not run Docker or Kubernetes. */
import { execFile, execFileSync } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseEnv, promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { ensureKeys, loadConfig, namedSettings } from '../../src/config/index.ts';
import { createTestDatabase } from '../support/database.ts';
import { readBlocks } from '../support/doc-blocks.ts';
import { needs } from '../support/needs.ts';
import { runPrinted } from '../support/printed-commands.ts';

const root = new URL('../../', import.meta.url).pathname;
/** With the linters that scripts/install-deploy-linters.sh installs. */
const PATH = `${path.join(root, 'node_modules/.cache/deploy-linters/bin')}:${process.env.PATH ?? ''}`;
const execute = promisify(execFile);
const run = (file: string, args: readonly string[], options: { cwd?: string } = {}) =>
  execute(file, args, { ...options, env: { ...process.env, PATH } });
const read = (file: string): Promise<string> => readFile(path.join(root, file), 'utf8');

function missing(tool: string): string | null {
  try {
    execFileSync('sh', ['-c', `command -v ${tool}`], { stdio: 'ignore', env: { PATH } });
    return null;
  } catch {
    return `${tool} is not installed: scripts/install-deploy-linters.sh`;
  }
}

const CHART = 'ops/helm/posthorn';
const EVERYTHING_ON = [
  'api.autoscaling.enabled=true',
  'worker.keda.enabled=true',
  'regions.eu.keda.minReplicas=0',
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

test(
  'docs/operate/deploy.md: the first commands copy the settings, make keys that Posthorn accepts, and migrate with them',
  needs(missing('openssl')),
  async () => {
    const directory = await mkdtemp(path.join(tmpdir(), 'posthorn-deploy-'));
    onTestFinished(() => rm(directory, { recursive: true }));
    await cp(path.join(root, 'ops/posthorn.env.example'), path.join(directory, 'ops/posthorn.env.example'));
    const database = await createTestDatabase({ empty: true });
    onTestFinished(() => database.drop());
    const [copyAndMakeKeys, migrateAndExamine] = readBlocks('docs/operate/deploy.md');
    const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', copyAndMakeKeys!.text], {
      cwd: directory,
    });
    const [adminKey, encryptionKey] = stdout.trim().split('\n');
    const settings = (await readFile(path.join(directory, 'posthorn.env'), 'utf8'))
      .replace('POSTHORN_ADMIN_KEY=\n', `POSTHORN_ADMIN_KEY=${adminKey}\n`)
      .replace('POSTHORN_ENCRYPTION_KEY=\n', `POSTHORN_ENCRYPTION_KEY=${encryptionKey}\n`)
      .replace('POSTGRES_PASSWORD=\n', `DATABASE_URL='${database.url}'\n`);
    const config = loadConfig({ mode: 'serve', env: parseEnv(settings) as Record<string, string> });
    expect(config).toMatchObject({ adminKey, processes: 2 });
    await ensureKeys(config, { notice: () => {} });
    await writeFile(path.join(directory, 'posthorn.env'), settings);
    const output = await runPrinted(migrateAndExamine!.text, {
      env: {},
      replace: { 'npx posthorn': 'posthorn' },
      cwd: directory,
    });
    expect(output).toContain('Applied: 0001');
    expect(output.match(/^ *[✗] +(\w+)/gm)).toEqual([expect.stringContaining('Partitions')]);
    expect(output).toMatch(/! +Shards +No worker runs/);
  },
);

test('Prometheus gets no admin key in compose.yaml, and scrapes the port for metrics', async () => {
  const { services } = parse(await read('compose.yaml'), { merge: true });
  const { environment } = services['posthorn-1'];
  expect(environment).toMatchObject({
    POSTHORN_METRICS_ADDR: '0.0.0.0:9464',
    POSTHORN_METRICS_ACCESS: 'open',
  });
  expect(JSON.stringify(services.prometheus)).not.toMatch(/secret|KEY/);
  const { scrape_configs: jobs } = parse(await read('ops/prometheus/prometheus.yml'));
  expect(jobs).toEqual([
    { job_name: 'posthorn', static_configs: [{ targets: ['posthorn-1:9464', 'posthorn-2:9464'] }] },
  ]);
  // Whoever reaches a published port could read the metrics of all tenants.
  for (const { ports = [] } of Object.values<{ ports?: string[] }>(services))
    for (const port of ports) expect(port).not.toMatch(/:9464$/);
});

test('hadolint finds nothing in the Dockerfile', needs(missing('hadolint')), async () => {
  const { stdout } = await run('hadolint', ['Dockerfile'], { cwd: root });
  expect(stdout).toBe('');
});

test('systemd accepts the unit', needs(missing('systemd-analyze')), async () => {
  const { stderr } = await run('systemd-analyze', ['verify', 'ops/systemd/posthorn.service'], { cwd: root });
  expect(stderr.split('\n').filter((line) => line.includes('posthorn.service'))).toEqual([]);
});

test('the templates of the chart use the job label, the secrets and the query that they should', async () => {
  const template = (name: string) => read(`${CHART}/templates/${name}.yaml`);
  const monitor = await template('service-monitor');
  expect(monitor).toContain('jobLabel: app.kubernetes.io/name');
  expect(monitor).not.toContain('POSTHORN_ADMIN_KEY');
  expect(await template('migration-job')).toContain('.Values.migrationJob.existingSecret');
  // Retries that wait for their time need no worker.
  expect(await template('autoscaling')).toContain('query: sum(posthorn_work_waiting{');
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

  test('labels the scrape job as the alert rules expect it, and gives Prometheus a key that may only read', async () => {
    expect(await read('ops/prometheus/alerts.yml')).toContain('up{job="posthorn"}');
    const manifests = await renderChart(...EVERYTHING_ON);
    const monitor = manifests.split('---').find((each) => each.includes('kind: ServiceMonitor'))!;
    expect(monitor).toContain('jobLabel: app.kubernetes.io/name');
    expect(manifests).toContain('app.kubernetes.io/name: posthorn');
    expect(monitor).toMatch(/credentials:\s+name: posthorn-metrics\s+key: key/);
  });

  test('lets the migration job use the database role of the owner', async () => {
    const secretsOf = (manifests: string) =>
      manifests
        .split('---')
        .filter((each) => each.includes('secretRef:'))
        .map((each) => `${/args: (.*)/.exec(each)![1]} ${/secretRef:\s+name: (.*)/.exec(each)![1]}`)
        .sort();
    expect(secretsOf(await renderChart('--set', 'migrationJob.existingSecret=owner'))).toEqual([
      '[migrate] owner',
      '[serve, --role, api] posthorn',
      '[serve, --role, worker] posthorn',
    ]);
    expect(secretsOf(await renderChart())).toContain('[migrate] posthorn');
  });

  test('SCL-5, SCL-6: runs the workers of each region in a deployment and an autoscaler of their own', async () => {
    const manifests = await renderChart(...EVERYTHING_ON);
    expect(manifests).toContain('args: [serve, --role, worker]');
    expect(manifests).toContain('args: [serve, --role, worker, --region, eu]');
    expect(manifests.match(/kind: ScaledObject/g)).toHaveLength(2);
    for (const region of ['default', 'eu'])
      expect(manifests).toContain(`query: sum(posthorn_work_waiting{role="worker",region="${region}"})`);
    expect(manifests).toContain('minReplicaCount: 0');
    expect(await renderChart('--set', 'regions.eu.replicas=3')).toMatch(/^ {2}replicas: 3/m);
    await expect(renderChart('--set', 'regions.default.replicas=3')).rejects.toThrow(/default/);
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
