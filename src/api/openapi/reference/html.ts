/** Templates that escape the values in them, except those that are HTML already. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Part = Html | string | number | null | false | undefined | readonly Part[];

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return new Html(strings.reduce((text, string, index) => text + show(parts[index - 1]) + string));
}

function show(part: Part): string {
  if (part === null || part === false || part === undefined) return '';
  if (part instanceof Html) return part.text;
  if (Array.isArray(part)) return part.map(show).join('');
  return String(part).replace(/[&<>"']/g, (character) => ENTITIES[character]!);
}

/** The Markdown that descriptions use: `code` and paragraphs. */
export function prose(text: string): Html {
  return html`${text.split(/\n\n+/).map((paragraph) => html`<p>${inline(paragraph)}</p>`)}`;
}

export function inline(text: string): Html {
  return html`${text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))}`;
}
