/** JSON as text: nothing is parsed into numbers, so a large one stays digit by digit what it was. */
const TOKENS = /("(?:\\.|[^"\\])*")(\s*:)?|(-?\d[\d.eE+-]*)|\b(true|false|null)\b|([{}[\],:])|\s+/g;

export interface Token {
  readonly text: string;
  readonly kind: 'key' | 'string' | 'number' | 'word' | 'mark';
}

export function tokensOf(text: string): Token[] {
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
export function layOut(tokens: readonly Token[]): (Token | string)[] {
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

/** An object with a member whose value is already JSON, as somebody typed it. Throws if it is not. */
export function withRawMember(object: object, name: string, value: string): string {
  try {
    JSON.parse(value);
  } catch (error) {
    throw new Error(`This is not valid JSON: ${error instanceof Error ? error.message : ''}`);
  }
  const head = JSON.stringify(object).slice(0, -1);
  return `${head}${head === '{' ? '' : ','}${JSON.stringify(name)}:${value}}`;
}
