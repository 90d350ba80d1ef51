import { fileURLToPath } from 'node:url';
import { defaultOf, named, type Setting, sections } from '../src/config/index.ts';

const MARK =
  '<!-- Generated from src/config/settings.ts by `npm run docs:configuration`; a test compares the two. -->';

const INTRODUCTION = `# Configuration

${MARK}

Set Posthorn up with environment variables or flags. Flags take precedence over variables, and an empty variable counts
as unset. The flag of \`POSTHORN_DRAIN_MS\` is \`--drain-ms\`. Posthorn reads its settings once, at start.

- An invalid value stops the start. All problems are reported at once, with the allowed values.
- An unknown \`POSTHORN_…\` variable is a warning in the log; an unknown flag is an error.
- The settings in effect are logged at start, with secrets masked.
- Write durations as \`500\` (milliseconds), \`500ms\`, \`2s\`, \`5m\`, \`1h\` or \`1d\`; sizes as \`65536\` (bytes), \`256KiB\`,
  \`4MiB\` or \`1GiB\`; lists with commas, and the empty list as \`none\`.
- Where \`posthorn dev\` has another default, it is marked _dev_.

The settings that hardly anyone needs to change are in [internal-settings.md](internal-settings.md).
`;

const INTERNAL_INTRODUCTION = `# Internal settings

${MARK}

These settings tune the engine. Their defaults fit nearly every deployment: change one only if a measurement tells you
to. [configuration.md](configuration.md) explains how settings are written.
`;

const CONDITIONS = `
## Conditions between settings

- \`POSTHORN_HEARTBEAT_MS\` must be less than half of \`POSTHORN_PROOF_MS\`, which must be less than \`POSTHORN_DEAD_AFTER_MS\`.
- \`POSTHORN_MAX_EVENT_BYTES\` must not exceed \`POSTHORN_MAX_BATCH_BYTES\` or \`POSTHORN_LANE_BUDGET_BYTES\`;
  \`POSTHORN_MAX_BATCH_BYTES\` must not exceed \`POSTHORN_ACCEPT_QUEUE_BYTES\`.
- \`POSTHORN_LANE_ITEMS\` must not exceed \`POSTHORN_LANE_BUDGET_ITEMS\`.
- \`POSTHORN_ROLE\` and \`POSTHORN_PROCESSES\` work with \`posthorn serve\` only. More than one process needs a fixed \`PORT\`.
`;

/** The generated pages by their path. */
export function configurationDocs(): ReadonlyMap<string, string> {
  return new Map([
    [pathOf('configuration.md'), INTRODUCTION + tablesOf((setting) => !setting.internal) + CONDITIONS],
    [pathOf('internal-settings.md'), INTERNAL_INTRODUCTION + tablesOf((setting) => setting.internal)],
  ]);
}

const pathOf = (page: string): string => fileURLToPath(new URL(`../docs/${page}`, import.meta.url));

function tablesOf(isIncluded: (setting: Setting<unknown>) => boolean): string {
  return Object.entries(sections)
    .flatMap(([title, section]) => {
      const rows = Object.entries(section as Record<string, unknown>)
        .map(([key, setting]) => [key, setting as Setting<unknown>] as const)
        .filter(([, setting]) => isIncluded(setting))
        .map(([key, setting]) => row(key, setting));
      if (rows.length === 0) return [];
      return [`\n## ${title}\n\n${table([['variable', 'flag', 'default', 'meaning'], ...rows])}\n`];
    })
    .join('');
}

function row(key: string, setting: Setting<unknown>): string[] {
  const { env, flag } = named(key, setting);
  const allowed = `Allowed: ${setting.allowed}.`;
  const secret = setting.secrecy === 'open' ? '' : ' Secret: always masked.';
  return [`\`${env}\``, `\`--${flag}\``, describeDefault(setting), `${setting.about} ${allowed}${secret}`];
}

/** Padded, as the formatter wants it. */
function table([head, ...rows]: string[][]): string {
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
