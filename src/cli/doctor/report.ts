import { styleText } from 'node:util';
import type { Examination } from './examine.ts';
import type { Finding, State } from './finding.ts';

const SIGNS: Readonly<Record<State, { readonly sign: string; readonly colour: 'green' | 'yellow' | 'red' }>> =
  {
    ok: { sign: '✓', colour: 'green' },
    warning: { sign: '!', colour: 'yellow' },
    problem: { sign: '✗', colour: 'red' },
  };

export const count = (findings: readonly Finding[], state: State): number =>
  findings.filter((finding) => finding.state === state).length;

/** For people: one line per check, and below it what to do, if anything. */
export function reportText({ mode, database, findings }: Examination): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = findings.flatMap(({ check, state, detail, todo }) => {
    const { sign, colour } = SIGNS[state];
    const line = `${styleText(colour, sign, { stream: process.stdout })} ${check.padEnd(width)}  ${detail}`;
    return todo === null ? [line] : [line, `${' '.repeat(width + 4)}→ ${todo}`];
  });
  return `Posthorn, as \`posthorn ${mode}\` would run it. Database: ${database}\n\n${lines.join('\n')}\n\n${summary(findings)}`;
}

function summary(findings: readonly Finding[]): string {
  const problems = count(findings, 'problem');
  const warnings = count(findings, 'warning');
  if (problems + warnings === 0) return 'No problems found.';
  const countOf = (number: number, one: string, more: string) => `${number} ${number === 1 ? one : more}`;
  const parts = [
    ...(problems > 0 ? [countOf(problems, 'problem', 'problems')] : []),
    ...(warnings > 0 ? [countOf(warnings, 'warning', 'warnings')] : []),
  ];
  return `${parts.join(', ')}.`;
}

/** For machines. */
export function reportJson({ mode, database, findings }: Examination): string {
  return JSON.stringify({ ok: count(findings, 'problem') === 0, mode, database, checks: findings }, null, 2);
}
