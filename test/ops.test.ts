/** Alert rules, dashboard and runbook (OBS-2): they fit each other, and name nothing that does not exist. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { dashboard, dashboardFile } from '../scripts/dashboard.ts';
import { renderPage } from '../scripts/guide/render-page.ts';
import { catalogue, definitionOf, type MetricName } from '../src/telemetry/metrics/index.ts';
import { ROOT, readBlocks } from './support/doc-blocks.ts';

const prometheus = fileURLToPath(new URL('../ops/prometheus/', import.meta.url));
const rules = await readFile(`${prometheus}alerts.yml`, 'utf8');
const runbook = await readFile(new URL('../docs/runbook.md', import.meta.url), 'utf8');

const alerts = rules
  .split(/^ {6}- alert: /m)
  .slice(1)
  .map((text) => ({ name: /^\w+/.exec(text)![0], text }));

/** What stands in an expression and is none of our metrics, in words. */
function unknownMetrics(text: string): string[] {
  return [...new Set(text.match(/\b(posthorn|process)_\w+/g))].filter((name) => {
    if (name in catalogue) return definitionOf(name as MetricName).type === 'histogram';
    const histogram = name.replace(/_(bucket|sum|count)$/, '');
    return !(histogram in catalogue) || definitionOf(histogram as MetricName).type !== 'histogram';
  });
}

describe('alert rules', () => {
  it('are there', () => {
    expect(alerts.length).toBeGreaterThanOrEqual(15);
  });

  it('name only metrics that exist', () => {
    expect(unknownMetrics(rules)).toEqual([]);
    expect(unknownMetrics('rate(posthorn_atempts_total[5m])')).toEqual(['posthorn_atempts_total']);
  });

  it.each(alerts)(
    '$name has a severity, a summary, a description and its section in the runbook',
    ({ name, text }) => {
      expect(text).toMatch(/severity: (critical|warning) /);
      expect(text).toMatch(/^ +summary: ".+"$/m);
      expect(text).toMatch(/^ +description: ".+"$/m);
      expect(text).toContain(`runbook_url: docs/runbook.md#${name.toLowerCase()}\n`);
      const section = runbook.split(/^## /m).find((part) => part.startsWith(`${name}\n`));
      expect(section).toMatch(/\*\*Means\*\*/);
      expect(section).toMatch(/\*\*Look\b/);
      expect(section).toMatch(/\*\*Do\*\*|\*\*Look and do\*\*/);
    },
  );

  it('docs/runbook.md: the printed command makes links to the guide', async () => {
    const [command] = readBlocks('docs/runbook.md');
    const printed = command!.text.replace(/ > alerts\.yml$/, '');
    const { stdout } = await promisify(execFile)('bash', ['-c', printed], { cwd: ROOT });
    expect(stdout.match(/runbook_url: .*/g)).toEqual(
      alerts.map(
        ({ name }) =>
          `runbook_url: https://webhooks.example.com/docs/guide/runbook.html#${name.toLowerCase()}`,
      ),
    );
    const page = renderPage('docs/runbook.md', runbook, new Set());
    for (const { name } of alerts) expect(page.html).toContain(`id="${name.toLowerCase()}"`);
  });

  it('are all that the runbook explains', () => {
    const sections = [...runbook.matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
    expect(sections).toEqual(alerts.map(({ name }) => name));
  });

  it('each fire and stay silent in a rule test', async () => {
    const tests = await readFile(`${prometheus}alerts.test.yml`, 'utf8');
    for (const { name } of alerts) expect(tests).toContain(`alertname="${name}"`);
  });

  it('are all made to happen on real servers, in test/extended/alerts*.test.ts, kafka/alerts.test.ts or redis/alerts.test.ts', async () => {
    const read = (file: string) => readFile(new URL(`extended/${file}`, import.meta.url), 'utf8');
    const files = [
      'alerts.test.ts',
      'alerts-service.test.ts',
      'kafka/alerts.test.ts',
      'redis/alerts.test.ts',
    ];
    const tests = (await Promise.all(files.map(read))).join('\n');
    expect(alerts.map(({ name }) => name).filter((name) => !tests.includes(`'${name}'`))).toEqual([]);
  });
});

describe('the dashboard', () => {
  it('ops/grafana/dashboard.json is up to date (if not: npm run ops:dashboard)', async () => {
    expect(await readFile(dashboardFile, 'utf8')).toBe(dashboard());
  });

  it('shows only metrics that exist', () => {
    const { panels } = JSON.parse(dashboard()) as { panels: { targets?: { expr: string }[] }[] };
    const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
    expect(expressions.length).toBeGreaterThan(30);
    expect(unknownMetrics(expressions.join('\n'))).toEqual([]);
  });
});
