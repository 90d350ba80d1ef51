import { fileURLToPath } from 'node:url';
import { defaultOf, named, type Setting, sections } from '../src/config/index.ts';

const MARK =
  '<!-- Generated from src/config/settings.ts by `npm run docs:configuration`; a test compares the two. -->';

const INTRODUCTION = `# Configuration

${MARK}

Set Posthorn up with environment variables or flags. A flag overrides its variable, and an empty variable counts as not
set. The flag of \`POSTHORN_DRAIN_MS\` is \`--drain-ms\`. Posthorn reads its settings once, at start.

- Posthorn does not start with an invalid value. It reports all invalid values at once, with what is allowed.
- An unknown \`POSTHORN_…\` variable logs a warning; an unknown flag is an error.
- Posthorn logs its settings at start, with secrets masked.
- Write durations as \`500\` (milliseconds), \`500ms\`, \`2s\`, \`5m\`, \`1h\` or \`1d\`; sizes as \`65536\` (bytes), \`256KiB\`,
  \`4MiB\` or \`1GiB\`; lists with commas, and an empty list as \`none\`.
- Where \`posthorn dev\` has another default, it is marked _dev_.

The settings that hardly anyone needs to change are in [internal-settings.md](internal-settings.md).
`;

const INTERNAL_INTRODUCTION = `# Internal settings

${MARK}

These settings tune the engine. Their defaults fit nearly every deployment: change one only if a measurement tells you
to. [configuration.md](configuration.md) explains how settings are written.
`;

const RULES = `
## Rules between settings

- \`POSTHORN_HEARTBEAT_MS\` must be less than half of \`POSTHORN_PROOF_MS\`, which must be less than \`POSTHORN_DEAD_AFTER_MS\`.
- \`POSTHORN_MAX_EVENT_BYTES\` must be at most \`POSTHORN_MAX_BATCH_BYTES\` and \`POSTHORN_LANE_BUDGET_BYTES\`;
  \`POSTHORN_MAX_BATCH_BYTES\` must be at most \`POSTHORN_ACCEPT_QUEUE_BYTES\`.
- \`POSTHORN_LANE_ITEMS\` must be at most \`POSTHORN_LANE_BUDGET_ITEMS\`.
- \`POSTHORN_ROLE\` and \`POSTHORN_PROCESSES\` work with \`posthorn serve\` only. More than one process needs a fixed \`PORT\`.
`;

/** Returns the generated pages by their path. */
export function configurationDocs(): ReadonlyMap<string, string> {
  return new Map([
    [locatePage('configuration.md'), INTRODUCTION + createTables((setting) => !setting.internal) + RULES],
    [locatePage('internal-settings.md'), INTERNAL_INTRODUCTION + createTables((setting) => setting.internal)],
  ]);
}

const locatePage = (page: string): string => fileURLToPath(new URL(`../docs/${page}`, import.meta.url));

function createTables(isIncluded: (setting: Setting<unknown>) => boolean): string {
  return Object.entries(sections)
    .flatMap(([title, section]) => {
      const rows = Object.entries(section as Record<string, unknown>)
        .map(([key, setting]) => [key, setting as Setting<unknown>] as const)
        .filter(([, setting]) => isIncluded(setting))
        .map(([key, setting]) => toRow(key, setting));
      if (rows.length === 0) return [];
      return [`\n## ${title}\n\n${toTable([['variable', 'flag', 'default', 'meaning'], ...rows])}\n`];
    })
    .join('');
}

function toRow(key: string, setting: Setting<unknown>): string[] {
  const { env, flag } = named(key, setting);
  const allowed = `Allowed: ${setting.allowed}.`;
  const secret = setting.secrecy === 'open' ? '' : ' Secret: always masked.';
  return [`\`${env}\``, `\`--${flag}\``, describeDefault(setting), `${setting.about} ${allowed}${secret}`];
}

/** A Markdown table with columns of equal width. */
function toTable([head, ...rows]: string[][]): string {
  const lines = [head!, ...rows].map((cells) => cells.map((cell) => cell.replaceAll('|', '\\|')));
  const widths = head!.map((_, column) => Math.max(...lines.map((cells) => cells[column]!.length)));
  const rule = widths.map((width) => '-'.repeat(width));
  const [first, ...others] = lines;
  return [first!, rule, ...others]
    .map((cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`)
    .join('\n');
}

function describeDefault(setting: Setting<unknown>): string {
  const [dev, serve] = (['dev', 'serve'] as const).map((mode) => setting.show(defaultOf(setting, mode)));
  const code = (value: string): string => (value === 'not set' ? '–' : `\`${value}\``);
  return dev === serve ? code(serve!) : `${code(serve!)}; _dev_ ${code(dev!)}`;
}
