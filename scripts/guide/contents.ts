/** Which pages the guide has, and in which order. */
import { glob } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface Chapter {
  readonly title: string;
  /** Files, from the root of the repository. */
  readonly files: readonly string[];
}

const docs = (...names: string[]): string[] => names.map((name) => `docs/${name}.md`);

const CHAPTERS: readonly Chapter[] = [
  { title: 'Start', files: ['README.md', ...docs('console', 'lifecycle', 'errors')] },
  {
    title: 'Publish',
    files: docs('api', 'idempotency', 'outbox', 'relay', 'kafka', 'library', 'catalogue', 'versions', 'pins'),
  },
  { title: 'Deliver', files: docs('signatures', 'filters', 'shaping', 'endpoint-auth', 'challenges') },
  {
    title: 'Observe',
    files: docs('live-tail', 'statistics', 'metrics', 'tracing', 'operational-events', 'notices', 'audit'),
  },
  {
    title: 'Operate',
    files: docs(
      'operate/deploy',
      'configuration',
      'runbook',
      'retention',
      'operate/sizing',
      'capacity',
      'scale-out',
      'operate/upgrade',
      'operate/restarts',
      'operate/backup',
      'operate/failover',
      'operate/postgresql-versions',
      'operate/poolers',
      'operate/roles',
      'operate/network',
      'operate/sign-in',
      'keys',
      'security',
      'embedded-database',
    ),
  },
  {
    title: 'Understand',
    files: docs('architecture', 'performance', 'lab', 'internal-settings', 'dependencies'),
  },
];

/** A page that no chapter names comes under "More", so that none is left out. Decisions come last. */
export async function readContents(): Promise<Chapter[]> {
  const files: string[] = [];
  for await (const file of glob('docs/**/*.md', { cwd: ROOT })) files.push(file.split(path.sep).join('/'));
  files.sort();
  const existing = new Set(['README.md', ...files]);
  const chapters = CHAPTERS.map(({ title, files: wanted }) => ({
    title,
    files: wanted.filter((file) => existing.has(file)),
  }));
  const named = new Set(chapters.flatMap((chapter) => chapter.files));
  const isDecision = (file: string): boolean => file.startsWith('docs/adr/');
  const more = files.filter((file) => !named.has(file) && !isDecision(file));
  return [
    ...chapters,
    { title: 'More', files: more },
    { title: 'Decisions', files: files.filter(isDecision) },
  ].filter((chapter) => chapter.files.length > 0);
}

/** `docs/operate/deploy.md` becomes `operate/deploy.html`. */
export function addressOf(file: string): string {
  if (file === 'README.md') return 'index.html';
  return file.replace(/^docs\//, '').replace(/\.md$/, '.html');
}
