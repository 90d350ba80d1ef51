/** One Markdown file as HTML, and the sections that the search finds. */
import path from 'node:path';
import { Marked, type Tokens } from 'marked';
import { addressOf } from './contents.ts';

export interface Section {
  /** Address within the guide, with the anchor of the heading. */
  readonly address: string;
  readonly title: string;
  readonly text: string;
}

export interface RenderedPage {
  readonly file: string;
  readonly title: string;
  readonly html: string;
  readonly sections: readonly Section[];
  /** Image files, from the root of the repository. */
  readonly images: readonly string[];
}

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"]/g, (char) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[char]!);

const toPlainText = (html: string): string =>
  html
    .replace(/<[^>]+>/g, ' ')
    .replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => ENTITIES[name]!)
    .replace(/\s+/g, ' ')
    .trim();
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };

/** The anchors that GitHub gives to headings, so that links between the files work in both places. */
function newAnchors(): (heading: string) => string {
  const seen = new Map<string, number>();
  return (heading) => {
    const slug = heading
      .toLowerCase()
      .replace(/[^\p{Letter}\p{Number}\s_-]/gu, '')
      .replaceAll(' ', '-');
    const earlier = seen.get(slug) ?? 0;
    seen.set(slug, earlier + 1);
    return earlier === 0 ? slug : `${slug}-${earlier}`;
  };
}

/** `pages`: all files of the guide. A link to another file of the repository becomes plain text. */
export function renderPage(file: string, markdown: string, pages: ReadonlySet<string>): RenderedPage {
  const anchorOf = newAnchors();
  const images: string[] = [];
  const folder = path.posix.dirname(file);
  const folderOfPage = path.posix.dirname(addressOf(file));
  const relative = (address: string): string => path.posix.relative(folderOfPage, address) || address;

  const resolveLink = (href: string): string | null => {
    if (/^(https?:|mailto:|#)/.test(href)) return href;
    const [target = '', anchor] = href.split('#');
    const linked = path.posix.join(folder, target);
    if (!pages.has(linked)) return null;
    return relative(addressOf(linked)) + (anchor === undefined ? '' : `#${anchor}`);
  };
  const resolveImage = (src: string): string => {
    const image = path.posix.join(folder, src);
    images.push(image);
    return relative(image.replace(/^docs\//, ''));
  };

  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }: Tokens.Heading) {
        const html = this.parser.parseInline(tokens);
        const anchor = anchorOf(toPlainText(html));
        return `<h${depth} id="${anchor}">${html} <a class="anchor" href="#${anchor}" aria-label="Link to this section">#</a></h${depth}>\n`;
      },
      link({ href, tokens }: Tokens.Link) {
        const html = this.parser.parseInline(tokens);
        const target = resolveLink(href);
        return target === null ? html : `<a href="${escapeHtml(target)}">${html}</a>`;
      },
      image({ href, text }: Tokens.Image) {
        return `<img src="${escapeHtml(resolveImage(href))}" alt="${escapeHtml(text)}" loading="lazy">`;
      },
      table(token: Tokens.Table) {
        const cell = (each: Tokens.TableCell, tag: string): string =>
          `<${tag}>${this.parser.parseInline(each.tokens)}</${tag}>`;
        // A table of README has no head.
        const isHeadless = token.header.every(({ text }) => text === '');
        const head = token.header.map((each) => cell(each, each.text === '' ? 'td' : 'th')).join('');
        const rows = token.rows.map((row) => `<tr>${row.map((each) => cell(each, 'td')).join('')}</tr>`);
        return `<div class="table" tabindex="0"><table>${isHeadless ? '' : `<thead><tr>${head}</tr></thead>`}<tbody>${rows.join('\n')}</tbody></table></div>\n`;
      },
      code({ text, lang }: Tokens.Code) {
        return `<pre tabindex="0" class="${/^\w+/.exec(lang ?? '')?.[0] ?? 'text'}"><code>${escapeHtml(text)}</code></pre>\n`;
      },
    },
  });
  // Pictures in README are HTML, because Markdown has no collapsed parts.
  const withImages = markdown.replace(
    /<img src="([^"]+)"/g,
    (_, src: string) => `<img src="${resolveImage(src)}"`,
  );
  const html = marked.parse(withImages, { async: false });
  const title = toPlainText(/<h1[^>]*>(.*?)<a class="anchor"/s.exec(html)?.[1] ?? file);
  return { file, title, html, sections: splitSections(addressOf(file), title, html), images };
}

function splitSections(address: string, pageTitle: string, html: string): Section[] {
  return html
    .split(/(?=<h[1-4] id=)/)
    .filter((part) => part.startsWith('<h'))
    .map((part) => {
      const [, anchor = '', heading = ''] = /^<h\d id="([^"]*)">(.*?) <a class="anchor"/s.exec(part) ?? [];
      const title = toPlainText(heading);
      const text = toPlainText(part.slice(part.indexOf('</h') + 5));
      return {
        address: `${address}#${anchor}`,
        title: title === pageTitle ? title : `${pageTitle}: ${title}`,
        text,
      };
    });
}
