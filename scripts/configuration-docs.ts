import { fileURLToPath } from 'node:url';
import { defaultOf, named, type Setting, sections } from '../src/config/index.ts';

export const docsFile = fileURLToPath(new URL('../docs/configuration.md', import.meta.url));

const INTRODUCTION = `# Configuration

<!-- Written by scripts/write-configuration-docs.ts from src/config/settings.ts; a test keeps the two together. -->

Posthorn reads its settings once, at the start, from environment variables and flags; flags outrank variables, and an
empty variable counts as not set. The flag of \`POSTHORN_SWEEP_MS\` is \`--sweep-ms\`.

- A value that is not allowed stops the start; all of them are reported at once, with what is allowed.
- A \`POSTHORN_…\` variable that is not a setting is warned of in the log; an unknown flag is an error.
- The settings in effect are logged at the start, with secrets masked.
- Durations are written \`500\` (milliseconds), \`500ms\`, \`2s\`, \`5m\`, \`1h\` or \`1d\`; sizes \`65536\` (bytes), \`256KiB\`,
  \`4MiB\` or \`1GiB\`; lists with commas, and \`none\` for the empty list.
- \`posthorn dev\` has other defaults in a few places, marked _dev_.
`;

const CONDITIONS = `
## Conditions between settings

- \`POSTHORN_HEARTBEAT_MS\` is less than half of \`POSTHORN_PROOF_MS\`, and that is less than \`POSTHORN_DEAD_AFTER_MS\`.
- \`POSTHORN_MAX_EVENT_BYTES\` is at most \`POSTHORN_MAX_BATCH_BYTES\` and \`POSTHORN_LANE_BUDGET_BYTES\`;
  \`POSTHORN_MAX_BATCH_BYTES\` is at most \`POSTHORN_ACCEPT_QUEUE_BYTES\`.
- \`POSTHORN_LANE_ITEMS\` is at most \`POSTHORN_LANE_BUDGET_ITEMS\`.
- \`POSTHORN_ROLE\` and \`POSTHORN_PROCESSES\` are for \`posthorn serve\`; more than one process needs a fixed \`PORT\`.
`;

export function configurationDocs(): string {
  const parts = Object.entries(sections).map(([title, section]) => {
    const rows = Object.entries(section).map(([key, setting]) =>
      row(key, setting as unknown as Setting<unknown>),
    );
    return `\n## ${title}\n\n${table([['variable', 'flag', 'default', 'meaning'], ...rows])}\n`;
  });
  return INTRODUCTION + parts.join('') + CONDITIONS;
}

function row(key: string, setting: Setting<unknown>): string[] {
  const { env, flag } = named(key, setting);
  const allowed = `Allowed: ${setting.allowed}.`;
  const secret = setting.secrecy === 'open' ? '' : ' Secret: masked wherever it is shown.';
  return [`\`${env}\``, `\`--${flag}\``, describeDefault(setting), `${setting.about} ${allowed}${secret}`];
}

/** Padded, because that is how the formatter wants it. */
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
