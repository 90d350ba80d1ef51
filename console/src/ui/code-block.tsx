/** Code, JSON and headers, with a copy button. */
import { type ReactNode, useMemo } from 'react';
import { Button } from './button.tsx';
import { useCopy } from './copy-button.tsx';
import { indentTokens, type Token, tokenize } from './json-text.ts';

/** Above this length JSON is shown as plain text: colouring it would make the page slow. */
const MAX_COLOURED_LENGTH = 60_000;

/** JSON with line breaks and colours. It is never parsed into numbers, so every digit is shown as it was sent. */
export function JsonBlock({ text, label = 'JSON' }: { text: string; label?: string }) {
  const content = useMemo((): ReactNode => {
    if (text.length > MAX_COLOURED_LENGTH || !isJson(text)) return text;
    return indentTokens(tokenize(text)).map(renderToken);
  }, [text]);
  return (
    <CodeBlock text={text} label={label}>
      {content}
    </CodeBlock>
  );
}

function renderToken(token: Token | string, index: number): ReactNode {
  if (typeof token === 'string') return token;
  if (token.kind === 'punctuation') return token.text;
  return (
    <span key={index} className={`json-${token.kind}`}>
      {token.text}
    </span>
  );
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** A request or response body: as JSON if it looks like JSON. */
export function BodyBlock({ text, label }: { text: string; label: string }) {
  return /^\s*[[{]/.test(text) ? (
    <JsonBlock text={text} label={label} />
  ) : (
    <CodeBlock text={text} label={label} />
  );
}

export function CodeBlock({ text, label, children }: { text: string; label: string; children?: ReactNode }) {
  const [isCopied, copy] = useCopy(text);
  return (
    <div className="code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must be able to scroll it */}
      {/* biome-ignore lint/a11y/useSemanticElements: a section would collapse the white space */}
      <pre tabIndex={0} role="region" aria-label={label}>
        {children ?? text}
      </pre>
      <Button kind="small quiet" icon={isCopied ? 'check' : 'copy'} label={`Copy ${label}`} onClick={copy} />
    </div>
  );
}

export function HeaderList({ headers }: { headers: Record<string, string> }) {
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
