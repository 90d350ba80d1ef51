/** JSON as text. Nothing is parsed into JavaScript numbers, so large numbers keep all their digits. */
const TOKENS = /("(?:\\.|[^"\\])*")(\s*:)?|(-?\d[\d.eE+-]*)|\b(true|false|null)\b|([{}[\],:])|\s+/g;

export interface Token {
  readonly text: string;
  readonly kind: 'key' | 'string' | 'number' | 'word' | 'punctuation';
}

/** Splits valid JSON into tokens, without its white space. */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  for (const [all, string, colon, number, word, punctuation] of text.matchAll(TOKENS)) {
    if (string !== undefined) {
      tokens.push({ text: string, kind: colon === undefined ? 'string' : 'key' });
      if (colon !== undefined) tokens.push({ text: ':', kind: 'punctuation' });
    } else if (number !== undefined) tokens.push({ text: number, kind: 'number' });
    else if (word !== undefined) tokens.push({ text: word, kind: 'word' });
    else if (punctuation !== undefined) tokens.push({ text: all, kind: 'punctuation' });
  }
  return tokens;
}

/** Adds line breaks and indentation between the tokens. */
export function indentTokens(tokens: readonly Token[]): (Token | string)[] {
  const indented: (Token | string)[] = [];
  let depth = 0;
  const addLineBreak = () => indented.push(`\n${'  '.repeat(depth)}`);
  for (const [index, token] of tokens.entries()) {
    const next = tokens[index + 1]?.text;
    const isOpening = token.text === '{' || token.text === '[';
    const isClosing = token.text === '}' || token.text === ']';
    if (token.kind === 'punctuation' && isClosing && !'{['.includes(tokens[index - 1]?.text ?? ' ')) {
      depth -= 1;
      addLineBreak();
    }
    indented.push(token);
    if (token.kind !== 'punctuation') continue;
    if (isOpening && next !== '}' && next !== ']') {
      depth += 1;
      addLineBreak();
    } else if (token.text === ',') addLineBreak();
    else if (token.text === ':') indented.push(' ');
  }
  return indented;
}

/** Returns the text of one member's value in a JSON object, unchanged; null if there is no such member. */
export function sliceMember(text: string, name: string): string | null {
  let depth = 0;
  let start = -1;
  for (const match of text.matchAll(TOKENS)) {
    const [all, string, colon, , , punctuation] = match;
    if (punctuation === '{' || punctuation === '[') depth += 1;
    if (punctuation === '}' || punctuation === ']') depth -= 1;
    if (start === -1) {
      if (depth === 1 && colon !== undefined && string === JSON.stringify(name))
        start = match.index + all.length;
    } else if ((punctuation === ',' && depth === 1) || depth === 0)
      return text.slice(start, match.index).trim();
  }
  return null;
}

/** Parses JSON that the user typed. Throws an error that says what is wrong with it. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`This is not valid JSON: ${error instanceof Error ? error.message : ''}`);
  }
}

/** Parses JSON that the user typed; null for an empty text. Throws like `parseJson`. */
export const parseOptionalJson = (text: string): unknown => (text.trim() === '' ? null : parseJson(text));

/** Serializes an object with one more member, whose value the user typed as JSON. Throws if the value is not JSON. */
export function appendRawMember(object: object, name: string, value: string): string {
  parseJson(value);
  const head = JSON.stringify(object).slice(0, -1);
  return `${head}${head === '{' ? '' : ','}${JSON.stringify(name)}:${value}}`;
}
