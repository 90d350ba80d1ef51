/** Code, JSON and headers to read. JSON is coloured from its text: what is shown is what was sent, digit by digit. */
import { type ReactNode, useMemo, useState } from 'react';
import { Button } from './basics.tsx';

const TOKENS = /("(?:\\.|[^"\\])*")(\s*:)?|(-?\d[\d.eE+-]*)|\b(true|false|null)\b|([{}[\],:])|\s+/g;

interface Token {
  readonly text: string;
  readonly kind: 'key' | 'string' | 'number' | 'word' | 'mark';
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  for (const [all, string, colon, number, word, mark] of text.matchAll(TOKENS)) {
    if (string !== undefined) {
      tokens.push({ text: string, kind: colon === undefined ? 'string' : 'key' });
      if (colon !== undefined) tokens.push({ text: ':', kind: 'mark' });
    } else if (number !== undefined) tokens.push({ text: number, kind: 'number' });
    else if (word !== undefined) tokens.push({ text: word, kind: 'word' });
    else if (mark !== undefined) tokens.push({ text: all, kind: 'mark' });
  }
  return tokens;
}

/** The same JSON with line breaks; numbers and strings stay as they were written. */
function layOut(tokens: readonly Token[]): (Token | string)[] {
  const out: (Token | string)[] = [];
  let depth = 0;
  const newLine = () => out.push(`\n${'  '.repeat(depth)}`);
  for (const [index, token] of tokens.entries()) {
    const next = tokens[index + 1]?.text;
    const opens = token.text === '{' || token.text === '[';
    const closes = token.text === '}' || token.text === ']';
    if (token.kind === 'mark' && closes && !'{['.includes(tokens[index - 1]?.text ?? ' ')) {
      depth -= 1;
      newLine();
    }
    out.push(token);
    if (token.kind !== 'mark') continue;
    if (opens && next !== '}' && next !== ']') {
      depth += 1;
      newLine();
    } else if (token.text === ',') newLine();
    else if (token.text === ':') out.push(' ');
  }
  return out;
}

const MOST_COLOURED = 60_000;

export function Json({ text, label = 'JSON' }: { text: string; label?: string }) {
  const content = useMemo((): ReactNode => {
    try {
      JSON.parse(text);
    } catch {
      return text;
    }
    if (text.length > MOST_COLOURED) return text;
    return layOut(tokensOf(text)).map((part, index) =>
      typeof part === 'string' || part.kind === 'mark' ? (
        typeof part === 'string' ? (
          part
        ) : (
          part.text
        )
      ) : (
        // biome-ignore lint/suspicious/noArrayIndexKey: a text never changes its parts
        <span key={index} className={`json-${part.kind}`}>
          {part.text}
        </span>
      ),
    );
  }, [text]);
  return (
    <CodeBlock text={text} label={label}>
      {content}
    </CodeBlock>
  );
}

export function CodeBlock({ text, label, children }: { text: string; label: string; children?: ReactNode }) {
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text).catch(() => {});
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <div className="code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard has to reach it */}
      {/* biome-ignore lint/a11y/useSemanticElements: a section would break its spaces */}
      <pre tabIndex={0} role="region" aria-label={label}>
        {children ?? text}
      </pre>
      <Button
        kind="small quiet"
        icon={copied ? 'check' : 'copy'}
        label={`Copy ${label}`}
        onClick={() => void copy()}
      />
    </div>
  );
}

export function Headers({ headers }: { headers: Record<string, string> }) {
  const names = Object.keys(headers);
  if (names.length === 0) return <p className="faint small">No headers.</p>;
  return (
    <div className="code-block">
      <dl className="header-list">
        {names.map((name) => (
          <div key={name} style={{ display: 'contents' }}>
            <dt>{name}</dt>
            <dd>{headers[name]}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

/** The text of one member of a JSON object, as it was written. */
export function rawMember(text: string, name: string): string | null {
  let depth = 0;
  let from = -1;
  for (const found of text.matchAll(TOKENS)) {
    const [all, string, colon, , , mark] = found;
    if (mark === '{' || mark === '[') depth += 1;
    if (mark === '}' || mark === ']') depth -= 1;
    if (from === -1) {
      if (depth === 1 && colon !== undefined && string === JSON.stringify(name))
        from = found.index + all.length;
    } else if ((mark === ',' && depth === 1) || depth === 0) return text.slice(from, found.index).trim();
  }
  return null;
}
