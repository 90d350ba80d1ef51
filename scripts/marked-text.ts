/**
 * Replaces the text between `<!-- name -->` and `<!-- /name -->`, so that a command can write a part of a document. Throws
 * if the document does not have exactly one such place.
 */
export function replaceMarked(document: string, name: string, content: string): string {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const [before, rest, ...others] = document.split(begin);
  const after = rest?.split(end);
  if (others.length > 0 || after?.length !== 2)
    throw new Error(`The document must have ${begin} and ${end} exactly once.`);
  return `${before}${begin}\n${content}\n${end}${after[1]}`;
}
