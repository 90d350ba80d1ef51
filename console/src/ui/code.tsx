/** Code, JSON and headers to read. JSON is coloured from its text: what is shown is what was sent, digit by digit. */
import { type ReactNode, useMemo } from 'react';
import { Button } from './basics.tsx';
import { useCopy } from './clipboard.ts';
import { layOut, tokensOf } from './json-text.ts';

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
  const [copied, copy] = useCopy(text);
  return (
    <div className="code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard has to reach it */}
      {/* biome-ignore lint/a11y/useSemanticElements: a section would break its spaces */}
      <pre tabIndex={0} role="region" aria-label={label}>
        {children ?? text}
      </pre>
      <Button kind="small quiet" icon={copied ? 'check' : 'copy'} label={`Copy ${label}`} onClick={copy} />
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
