/**
 * Whether `If-None-Match` matches the entity tag, so that the answer is 304 (RFC 9110, 13.1.2). `*` matches every
 * tag, and weak tags compare like strong ones.
 */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  const tags: readonly string[] = ifNoneMatch.match(/"[^"]*"/g) ?? [];
  return tags.includes(etag.replace(/^W\//, ''));
}
