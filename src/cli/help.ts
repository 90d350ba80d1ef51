import { styleText } from 'node:util';
import { defaultOf, named, type Setting, sections } from '../config/index.ts';
import type { Command } from './command.ts';

export function overview(commands: readonly Command[], version: string): string {
  const width = Math.max(...commands.map((command) => command.name.length));
  const list = commands.map((command) => `  ${command.name.padEnd(width)}  ${command.summary}`).join('\n');
  return `Posthorn ${version}: webhook delivery that never loses an accepted event.

Usage: posthorn <command> [--setting value]

${list}

  posthorn help <command>   how to use a command
  posthorn help settings    the settings, as flags and as environment variables
  posthorn --version

Try it: posthorn dev`;
}

export function commandHelp(command: Command): string {
  return `Usage: ${command.usage}\n\n${command.about}\n\nEvery setting is also a flag: posthorn help settings`;
}

const LINE_WIDTH = 100;

export function settingsHelp(): string {
  const heading = (text: string): string => styleText('bold', text, { stream: process.stdout });
  const parts = Object.entries(sections).flatMap(([title, section]) => {
    const entries = Object.entries(section as Record<string, unknown>)
      .map(([key, setting]) => [key, setting as Setting<unknown>] as const)
      .filter(([, setting]) => !setting.internal)
      .map(([key, setting]) => settingHelp(key, setting));
    return entries.length === 0 ? [] : [`${heading(title)}\n\n${entries.join('\n')}`];
  });
  return `Flags take precedence over environment variables. Durations: 500ms, 2s, 5m, 1h. Sizes: 256KiB, 4MiB.\ndocs/internal-settings.md lists the settings that tune the engine.\n\n${parts.join('\n\n')}`;
}

function settingHelp(key: string, setting: Setting<unknown>): string {
  const { env, flag } = named(key, setting);
  const about = `${setting.about} Default: ${describeDefault(setting)}.`;
  return `  --${flag}, ${env}\n${wrap(about, LINE_WIDTH - 6)
    .map((line) => `      ${line}`)
    .join('\n')}`;
}

export function describeDefault(setting: Setting<unknown>): string {
  const [dev, serve] = (['dev', 'serve'] as const).map((mode) => setting.show(defaultOf(setting, mode)));
  return dev === serve ? dev! : `${serve} (dev: ${dev})`;
}

export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
